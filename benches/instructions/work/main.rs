//! Work per octet of each parser and layer for a benign input and for expensive inputs.
//!
//! All inputs have the same number of octets, so that the ratio of two rows is that of their work per octet. The
//! comparison fails if a row takes more than eight times the instructions of its benign row (`src/work.rs`). This is a
//! separate program because additional calls would reduce inlining in the program of the hot paths.

#![expect(missing_docs, reason = "the macros generate public items without documentation")]

#[path = "../../cases/mod.rs"]
mod cases;
mod inputs;

use flowgauge::base::LinkType;
use flowgauge::decode::fragment::OverlapPolicy;
use flowgauge::dedup::Mode;
use flowgauge_instructions::padding;
use gungraun::prelude::*;
use gungraun::{Dhat, EntryPoint};

use inputs::below::{Checking, Parsing, Reading, Walking};
use inputs::bus::{Answering, Subscribing};
use inputs::coded::Joining;
use inputs::collector::Collecting;
use inputs::feed::{Feeding, checked, prepared};
use inputs::fragment::Pushing;
use inputs::reassembler::Reassembly;
use inputs::stream::Receiving;
use inputs::summary::Summarizing;
use inputs::tracker::Tracking;

/// Seeds of all keyed hashes.
pub(crate) const SEEDS: [u64; 4] = [11, 22, 33, 44];

#[library_benchmark(setup = prepared, teardown = checked)]
#[bench::benign(inputs::http1::benign)]
#[bench::one_octet_segments(inputs::http1::one_octet_segments)]
#[bench::tiny_requests(inputs::http1::tiny_requests)]
#[bench::tiny_chunks(inputs::http1::tiny_chunks)]
#[bench::head_by_octets(inputs::http1::head_by_octets)]
#[bench::chunk_line_by_octets(inputs::http1::chunk_line_by_octets)]
#[bench::lost_by_octets(inputs::http1::lost_by_octets)]
#[bench::waiting_by_octets(inputs::http1::waiting_by_octets)]
#[bench::user_information(inputs::http1::user_information)]
#[bench::folded_fields(inputs::http1::folded_fields)]
fn http1(feeding: Feeding) -> Feeding {
    feeding.feed()
}

#[library_benchmark(setup = prepared, teardown = checked)]
#[bench::benign(inputs::http2::benign)]
#[bench::one_octet_segments(inputs::http2::one_octet_segments)]
#[bench::indexed_name_bomb(inputs::http2::indexed_name_bomb)]
#[bench::lists_below_the_limit(inputs::http2::lists_below_the_limit)]
#[bench::expansion_below_the_limit(inputs::http2::expansion_below_the_limit)]
#[bench::repeated_paths(inputs::http2::repeated_paths)]
#[bench::stream_churn(inputs::http2::stream_churn)]
#[bench::resets(inputs::http2::resets)]
#[bench::continuations(inputs::http2::continuations)]
#[bench::static_fields(inputs::http2::static_fields)]
#[bench::long_codes(inputs::http2::long_codes)]
#[bench::table_churn(inputs::http2::table_churn)]
fn http2(feeding: Feeding) -> Feeding {
    feeding.feed()
}

#[library_benchmark(setup = prepared, teardown = checked)]
#[bench::benign(inputs::tls::benign)]
#[bench::one_octet_segments(inputs::tls::one_octet_segments)]
#[bench::one_octet_records(inputs::tls::one_octet_records)]
#[bench::extensions(inputs::tls::extensions)]
#[bench::cipher_suites(inputs::tls::cipher_suites)]
#[bench::empty_hellos(inputs::tls::empty_hellos)]
#[bench::alt_names(inputs::tls::alt_names)]
#[bench::certificates(inputs::tls::certificates)]
#[bench::alerts(inputs::tls::alerts)]
fn tls(feeding: Feeding) -> Feeding {
    feeding.feed()
}

#[library_benchmark(setup = prepared, teardown = checked)]
#[bench::benign(inputs::dtls::benign)]
#[bench::one_octet_fragments(inputs::dtls::one_octet_fragments)]
#[bench::unfinished_messages(inputs::dtls::unfinished_messages)]
#[bench::unfinished_handshakes(inputs::dtls::unfinished_handshakes)]
fn dtls(feeding: Feeding) -> Feeding {
    feeding.feed()
}

#[library_benchmark(setup = prepared, teardown = checked)]
#[bench::benign(inputs::quic::benign)]
#[bench::tiny_messages(inputs::quic::tiny_messages)]
#[bench::tiny_messages_at_once(inputs::quic::tiny_messages_at_once)]
#[bench::scattered_octets(inputs::quic::scattered_octets)]
#[bench::bad_packets(inputs::quic::bad_packets)]
#[bench::short_packets(inputs::quic::short_packets)]
#[bench::pings(inputs::quic::pings)]
fn quic(feeding: Feeding) -> Feeding {
    feeding.feed()
}

#[library_benchmark(setup = prepared, teardown = checked)]
#[bench::benign(inputs::dns::benign)]
#[bench::over_tcp(inputs::dns::over_tcp)]
#[bench::pointers_to_long_names(inputs::dns::pointers_to_long_names)]
#[bench::chains_of_pointers(inputs::dns::chains_of_pointers)]
#[bench::names_of_many_labels(inputs::dns::names_of_many_labels)]
#[bench::sets_of_types(inputs::dns::sets_of_types)]
#[bench::escaped_labels(inputs::dns::escaped_labels)]
#[bench::unanswered_queries(inputs::dns::unanswered_queries)]
#[bench::answers_to_many(inputs::dns::answers_to_many)]
fn dns(feeding: Feeding) -> Feeding {
    feeding.feed()
}

#[library_benchmark(setup = prepared, teardown = checked)]
#[bench::benign(inputs::ssh::benign)]
#[bench::one_octet_segments(inputs::ssh::one_octet_segments)]
#[bench::long_lists(inputs::ssh::long_lists)]
#[bench::lines_before(inputs::ssh::preceding_lines)]
fn ssh(feeding: Feeding) -> Feeding {
    feeding.feed()
}

#[library_benchmark(setup = prepared, teardown = checked)]
#[bench::benign(inputs::mail::benign_smtp)]
#[bench::one_octet_segments(inputs::mail::smtp_by_octets)]
#[bench::noops(inputs::mail::noops)]
#[bench::small_commands(inputs::mail::small_commands)]
#[bench::many_recipients(inputs::mail::many_recipients)]
#[bench::replies_to_no_data(inputs::mail::replies_to_no_data)]
#[bench::line_by_octets(inputs::mail::line_by_octets)]
#[bench::empty_lines(inputs::mail::empty_lines)]
fn smtp(feeding: Feeding) -> Feeding {
    feeding.feed()
}

#[library_benchmark(setup = prepared, teardown = checked)]
#[bench::benign(inputs::mail::benign_ftp)]
#[bench::one_octet_segments(inputs::mail::ftp_by_octets)]
#[bench::noops(inputs::mail::ftp_noops)]
#[bench::numbers(inputs::mail::ftp_numbers)]
fn ftp(feeding: Feeding) -> Feeding {
    feeding.feed()
}

#[library_benchmark(setup = prepared, teardown = checked)]
#[bench::benign(inputs::kit::benign)]
#[bench::unanswered_searches(inputs::kit::unanswered_searches)]
#[bench::conditions(inputs::kit::conditions)]
#[bench::nested_filters(inputs::kit::nested_filters)]
#[bench::attributes(inputs::kit::attributes)]
#[bench::unanswered_requests(inputs::kit::unanswered_requests)]
#[bench::responses_to_none(inputs::kit::responses_to_none)]
#[bench::variables(inputs::kit::variables)]
#[bench::short_lines(inputs::kit::short_lines)]
#[bench::line_by_octets(inputs::kit::line_by_octets)]
#[bench::empty_attributes(inputs::kit::empty_attributes)]
#[bench::compounds(inputs::kit::compounds)]
#[bench::cases_of_dcerpc(args = (("dcerpc-tcp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_dhcp(args = (("dhcp-udp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_dhcpv6(args = (("dhcpv6-udp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_imap(args = (("imap-tcp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_irc(args = (("irc-tcp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_kerberos(args = (("kerberos-udp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_ldap(args = (("ldap-tcp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_modbus(args = (("modbus-tcp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_mqtt(args = (("mqtt-tcp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_nbdgm(args = (("nbdgm-udp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_nbns(args = (("nbns-udp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_ntp(args = (("ntp-udp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_pop3(args = (("pop3-tcp", 4)), setup = inputs::kit::of_cases)]
#[bench::cases_of_radius(args = (("radius-udp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_rdp(args = (("rdp-tcp", 1)), setup = inputs::kit::of_cases)]
#[bench::cases_of_rtcp(args = (("rtcp-udp", 1)), setup = inputs::kit::of_cases)]
#[bench::cases_of_rtp(args = (("rtp-udp", 1)), setup = inputs::kit::of_cases)]
#[bench::cases_of_sip(args = (("sip-tcp", 8)), setup = inputs::kit::of_cases)]
#[bench::cases_of_smb(args = (("smb-tcp", 5)), setup = inputs::kit::of_cases)]
#[bench::cases_of_rfb(args = (("vnc-tcp", 1)), setup = inputs::kit::of_cases)]
#[bench::cases_of_snmp(args = (("snmp-udp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_socks(args = (("socks-tcp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_stun(args = (("stun-udp", 32)), setup = inputs::kit::of_cases)]
#[bench::cases_of_syslog(args = (("syslog-udp", 32)), setup = inputs::kit::of_cases)]
fn kit(feeding: Feeding) -> Feeding {
    feeding.feed()
}

#[library_benchmark(setup = inputs::coded::digested, teardown = inputs::coded::checked)]
#[bench::benign(inputs::coded::benign)]
#[bench::bombs(inputs::coded::bombs)]
#[bench::bombs_of_flows(inputs::coded::bombs_of_flows)]
#[bench::members(inputs::coded::members)]
#[bench::bodies(inputs::coded::tiny_bodies)]
#[bench::bodies_of_flows(inputs::coded::tiny_bodies_of_flows)]
fn coded(feeding: Feeding<Joining>) -> Feeding<Joining> {
    feeding.feed()
}

#[library_benchmark(setup = inputs::coded::undigested, teardown = inputs::coded::checked)]
#[bench::benign(inputs::coded::benign)]
#[bench::bombs(inputs::coded::bombs)]
#[bench::bombs_of_flows(inputs::coded::bombs_of_flows)]
#[bench::members(inputs::coded::members)]
#[bench::bodies(inputs::coded::tiny_bodies)]
#[bench::bodies_of_flows(inputs::coded::tiny_bodies_of_flows)]
fn coded_without_digests(feeding: Feeding<Joining>) -> Feeding<Joining> {
    feeding.feed()
}

#[library_benchmark(setup = inputs::tracker::prepared, teardown = inputs::tracker::checked)]
#[bench::benign((inputs::tracker::benign, 1000))]
#[bench::syn_flood((inputs::tracker::syn_flood, 1000))]
#[bench::udp_flood((inputs::tracker::udp_flood, 1000))]
#[bench::hours_apart((inputs::tracker::udp_flood, 3_600_000_000_000))]
#[bench::reuse((inputs::tracker::reuse, 1000))]
#[bench::disorder((inputs::tracker::disorder, 1000))]
#[bench::icmp_errors((inputs::tracker::icmp_errors, 1000))]
fn tracker(tracking: Tracking) -> Tracking {
    tracking.track()
}

#[library_benchmark(setup = inputs::reassembler::prepared, teardown = inputs::reassembler::checked)]
#[bench::benign(inputs::reassembler::benign)]
#[bench::holes_forward(inputs::reassembler::holes_forward)]
#[bench::holes_backward(inputs::reassembler::holes_backward)]
#[bench::holes_outward(inputs::reassembler::holes_outward)]
#[bench::overlaps(inputs::reassembler::overlaps)]
#[bench::shrinking_overlaps(inputs::reassembler::shrinking_overlaps)]
#[bench::repetition(inputs::reassembler::repetition)]
#[bench::strays(inputs::reassembler::strays)]
fn reassembler(reassembly: Reassembly) -> Reassembly {
    reassembly.reassemble()
}

#[library_benchmark(setup = inputs::fragment::prepared, teardown = inputs::fragment::checked)]
#[bench::benign((inputs::fragment::benign, OverlapPolicy::Discard))]
#[bench::tiny_fragments((inputs::fragment::tiny_fragments, OverlapPolicy::Discard))]
#[bench::only_fragments((inputs::fragment::only_fragments, OverlapPolicy::Discard))]
#[bench::scattered_fragments((inputs::fragment::scattered_fragments, OverlapPolicy::Discard))]
#[bench::overlaps((inputs::fragment::overlaps, OverlapPolicy::Last))]
#[bench::discards((inputs::fragment::discards, OverlapPolicy::Discard))]
#[bench::duplicates((inputs::fragment::duplicates, OverlapPolicy::Discard))]
fn fragment(pushing: Pushing) -> Pushing {
    pushing.push()
}

#[library_benchmark(setup = inputs::below::checking, teardown = Checking::checked)]
#[bench::benign((inputs::below::distinct_frames, Mode::Exact, false))]
#[bench::short_duplicates((inputs::below::short_duplicates, Mode::Exact, false))]
#[bench::short_duplicates_compared((inputs::below::short_duplicates, Mode::Exact, true))]
#[bench::vlan_tags((inputs::below::vlan_tags, Mode::IgnoreMirrorChanges, false))]
fn dedup(checking: Checking) -> Checking {
    checking.check()
}

#[library_benchmark(setup = inputs::below::walking, teardown = Walking::all_found)]
#[bench::benign((inputs::below::in_vxlan, LinkType::ETHERNET))]
#[bench::nested_ip((inputs::below::nested_ip, LinkType::ETHERNET))]
#[bench::nested_gre((inputs::below::nested_gre, LinkType::ETHERNET))]
#[bench::nested_l2tp((inputs::below::nested_l2tp, LinkType::ETHERNET))]
#[bench::ipv6_extensions((inputs::below::ipv6_extensions, LinkType::ETHERNET))]
#[bench::mpls_labels((inputs::below::mpls_labels, LinkType::ETHERNET))]
fn link(walking: Walking) -> Walking {
    walking.walk()
}

#[library_benchmark(setup = inputs::below::reading, teardown = Reading::all_read)]
#[bench::benign((inputs::below::packets, usize::MAX))]
#[bench::empty_packets((inputs::below::empty_packets, usize::MAX))]
#[bench::empty_blocks((inputs::below::empty_blocks, usize::MAX))]
#[bench::interfaces((inputs::below::interfaces, usize::MAX))]
#[bench::named_interfaces((inputs::below::named_interfaces, usize::MAX))]
#[bench::sections((inputs::below::sections, usize::MAX))]
#[bench::short_reads((inputs::below::packets, 16))]
fn pcapng(reading: Reading) -> Reading {
    reading.read()
}

#[library_benchmark(setup = inputs::below::parsing, teardown = Parsing::parsed)]
#[bench::benign(inputs::below::hosts_and_ports)]
#[bench::parentheses(inputs::below::parentheses)]
#[bench::negations(inputs::below::negations)]
#[bench::ports(inputs::below::ports)]
#[bench::unknown_word(inputs::below::unknown_word)]
fn filter(parsing: Parsing) -> Parsing {
    parsing.parse()
}

#[library_benchmark(setup = inputs::collector::collecting, teardown = Collecting::collected)]
#[bench::benign(inputs::collector::benign)]
#[bench::short_records(inputs::collector::short_records)]
#[bench::one_octet_records(inputs::collector::one_octet_records)]
#[bench::empty_messages(inputs::collector::empty_messages)]
#[bench::new_exporters(inputs::collector::new_exporters)]
#[bench::new_templates(inputs::collector::new_templates)]
#[bench::long_templates(inputs::collector::long_templates)]
#[bench::type_records(inputs::collector::type_records)]
#[bench::long_templates_again(inputs::collector::long_templates_again)]
#[bench::withdrawals(inputs::collector::withdrawals)]
#[bench::sampled_packets(inputs::collector::sampled_packets)]
fn collector(collecting: Collecting) -> Collecting {
    collecting.collect()
}

#[library_benchmark(setup = inputs::bus::subscribing, teardown = Subscribing::received)]
#[bench::benign(inputs::bus::records)]
#[bench::short_lines(inputs::bus::short_lines)]
#[bench::short_messages(inputs::bus::short_messages)]
#[bench::new_topics(inputs::bus::new_topics)]
#[bench::contradictions(inputs::bus::contradictions)]
fn subscriber(subscribing: Subscribing) -> Subscribing {
    subscribing.receive()
}

#[library_benchmark(setup = inputs::bus::answering, teardown = Answering::all_answered)]
#[bench::benign((inputs::bus::ids_of_flows, 1))]
#[bench::ids_of_flows((inputs::bus::ids_of_flows, 64))]
#[bench::unknown_ids((inputs::bus::unknown_ids, 64))]
#[bench::tops((inputs::bus::tops, 64))]
#[bench::slices((inputs::bus::slices, 64))]
fn router(answering: Answering) -> Answering {
    answering.answer()
}

#[library_benchmark(setup = inputs::stream::receiving, teardown = Receiving::all_received)]
#[bench::benign((inputs::below::packets, 1400))]
#[bench::short_segments((inputs::below::packets, 64))]
#[bench::empty_packets((inputs::below::empty_packets, 1400))]
#[bench::empty_blocks((inputs::below::empty_blocks, 1400))]
#[bench::sections((inputs::below::sections, 1400))]
fn stream(receiving: Receiving) -> Receiving {
    receiving.receive()
}

#[library_benchmark(setup = inputs::summary::summarizing, teardown = inputs::summary::summarized)]
#[bench::benign(inputs::summary::benign)]
#[bench::spoofed_handshakes(inputs::summary::spoofed_handshakes)]
#[bench::spoofed_datagrams(inputs::summary::spoofed_datagrams)]
#[bench::spoofed_queries(inputs::summary::spoofed_queries)]
fn summary(summarizing: Summarizing) -> Summarizing {
    summarizing.summarize()
}

library_benchmark_group!(
    name = work_group,
    benchmarks = [
        http1,
        http2,
        tls,
        dtls,
        quic,
        dns,
        ssh,
        smtp,
        ftp,
        kit,
        coded,
        coded_without_digests,
        tracker,
        reassembler,
        fragment,
        dedup,
        link,
        pcapng,
        filter,
        collector,
        subscriber,
        router,
        stream,
        summary
    ]
);

gungraun::main!(
    config = LibraryBenchmarkConfig::default()
        .env("PADDING", padding())
        .tool(Dhat::default().entry_point(EntryPoint::Default));
    library_benchmark_groups = work_group
);
