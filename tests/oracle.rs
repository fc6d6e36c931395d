//! Comparison of the results of flowgauge and of independent programs for real captures.
//!
//! The captures are not part of this repository. Set `FLOWGAUGE_CORPUS` to a folder with `MANIFEST.tsv`, `captures/`,
//! `derived/`, and `oracles/`; without it these tests print a note and pass. The tests in `examples` always run. To see
//! all figures:
//!
//! ```text
//! FLOWGAUGE_CORPUS=../corpus cargo test --test oracle --features compression -- --nocapture
//! ```

#[cfg(feature = "protocols")]
#[path = "oracle/applications.rs"]
mod applications;
#[cfg(all(feature = "protocols", feature = "serde", feature = "compression"))]
#[path = "oracle/arkime_fields.rs"]
mod arkime_fields;
#[path = "oracle/checksums.rs"]
mod checksums;
#[path = "oracle/community_id.rs"]
mod community_id;
#[cfg(feature = "protocols")]
#[path = "oracle/contents.rs"]
mod contents;
#[cfg(feature = "protocols")]
#[path = "oracle/contradicted.rs"]
mod contradicted;
#[path = "oracle/corpus.rs"]
mod corpus;
#[path = "oracle/decode_as.rs"]
mod decode_as;
#[path = "oracle/dedup.rs"]
mod dedup;
#[cfg(feature = "protocols")]
#[path = "oracle/dialogues.rs"]
mod dialogues;
#[cfg(feature = "protocols")]
#[path = "oracle/dns.rs"]
mod dns;
#[cfg(all(feature = "protocols", feature = "serde", feature = "compression"))]
#[path = "oracle/eve.rs"]
mod eve;
#[cfg(all(feature = "protocols", feature = "serde", feature = "compression"))]
#[path = "support/eve.rs"]
mod eve_events;
#[path = "oracle/examples.rs"]
mod examples;
#[path = "oracle/flowtest.rs"]
mod flowtest;
#[path = "oracle/follow.rs"]
mod follow;
#[cfg(feature = "protocols")]
#[path = "oracle/http.rs"]
mod http;
#[cfg(feature = "protocols")]
#[path = "oracle/kit.rs"]
mod kit;
#[cfg(feature = "protocols")]
#[path = "oracle/layers.rs"]
mod layers;
#[cfg(feature = "protocols")]
#[path = "support/mail.rs"]
mod mail;
#[cfg(all(feature = "protocols", feature = "serde", feature = "compression"))]
#[path = "support/message_json.rs"]
mod message_json;
#[cfg(all(feature = "protocols", feature = "serde", feature = "compression"))]
#[path = "oracle/messages.rs"]
mod messages;
#[cfg(feature = "protocols")]
#[path = "oracle/ndpi.rs"]
mod ndpi;
#[cfg(all(feature = "protocols", feature = "serde", feature = "compression"))]
#[path = "oracle/ndpi_fields.rs"]
mod ndpi_fields;
#[cfg(feature = "protocols")]
#[path = "oracle/neighbors.rs"]
mod neighbors;
#[cfg(feature = "protocols")]
#[path = "support/parallel.rs"]
mod parallel;
#[cfg(feature = "protocols")]
#[path = "oracle/quic.rs"]
mod quic;
#[cfg(feature = "protocols")]
#[path = "oracle/recognized.rs"]
mod recognized;
#[path = "oracle/retransmissions.rs"]
mod retransmissions;
#[cfg(feature = "protocols")]
#[path = "oracle/server_names.rs"]
mod server_names;
#[path = "oracle/skipped.rs"]
mod skipped;
#[path = "support/sessions.rs"]
mod support;
#[cfg(all(feature = "protocols", feature = "serde", feature = "compression"))]
#[path = "oracle/suricata_events.rs"]
mod suricata_events;
#[path = "oracle/suricata_streams.rs"]
mod suricata_streams;
#[cfg(feature = "protocols")]
#[path = "oracle/tls.rs"]
mod tls;
#[cfg(feature = "protocols")]
#[path = "oracle/transactions.rs"]
mod transactions;
#[path = "oracle/tshark.rs"]
mod tshark;
#[path = "oracle/tunnels.rs"]
mod tunnels;
#[cfg(feature = "protocols")]
#[path = "oracle/zeek.rs"]
mod zeek;
#[cfg(all(feature = "protocols", feature = "serde", feature = "compression"))]
#[path = "oracle/zeek_events.rs"]
mod zeek_events;
