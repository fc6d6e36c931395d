//! SSH before encryption (RFC 4253): identification lines, algorithm lists, HASSH, negotiated algorithms, and the key of the
//! server.
//!
//! A program can use these messages for an inventory of SSH software and algorithms:
//!
//! ```
//! use flowgauge::protocols::ssh::Message as Ssh;
//! use flowgauge::{FileSource, Message, Pipeline, RunOptions, Standard, on_message};
//!
//! let mut software = Vec::new();
//! let sink = on_message::<Standard>(|_, _, message| match message {
//!     Message::Ssh(Ssh::Identification(line)) => software.push(line.software_version.to_string()),
//!     _ => {}
//! });
//! let mut source = FileSource::open("examples/data/ssh.pcap")?;
//! Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
//! assert_eq!(software, ["OpenSSH_9.2p1"; 8]);
//! # Ok::<(), flowgauge::Error>(())
//! ```
//!
//! The parser reads the identification of both sides, including lines that a server may send before its own (section
//! 4.2), and packets up to the first SSH_MSG_KEXINIT of each side (section 7.1) or an SSH_MSG_DISCONNECT before it, in
//! any number of segments; the key of the server (section 8, RFC 4419, RFC 5656); and the lengths of up to 32 encrypted segments of
//! the server, by which a successful authentication is recognized. The rest of the connection causes no cost. Octets behind a
//! KEXINIT that are no packet of the key exchange are no fault.
//! For SSH 1, only the identification is reported; 1.99 is SSH 2 (section 5.1).
//!
//! | message | reported for |
//! |---|---|
//! | [`Message::Identification`] | the identification line of a side |
//! | [`Message::KexInit`] | the algorithm lists of a side, with HASSH for a client and HASSHServer for a server |
//! | [`Message::Negotiated`] | the second KEXINIT |
//! | [`Message::HostKey`] | the key of the server, with its fingerprint; not with the methods `gss-*` and `rsa*` |
//! | [`Message::Disconnect`] | a disconnect before KEXINIT |
//! | [`Message::Authentication`] | a segment of the server whose length is that of a refusal or of a success |
//!
//! Limits: an identification line of [`IDENTIFICATION_LEN_MAX`] octets, [`LINES_BEFORE_MAX`] lines before it, packets
//! of [`PACKET_LEN_MAX`] octets, [`PACKETS_BEFORE_MAX`] packets before KEXINIT, and before NEWKEYS. Exceeding one is a fault. The lists of
//! the first side are stored until those of the other side arrive. Parsing stops after a gap, because packet boundaries
//! are not marked.
//!
//! Standards: RFC 4250, 4251, 4253, 4419, 5656; HASSH as published with github.com/salesforce/hassh.

mod guess;
mod kexinit;
mod message;
mod parser;
mod probe;

pub use kexinit::{KexInit, NameList, Negotiated};
pub use message::{Authentication, Disconnect, Fingerprint, HostKey, Identification, Message};
pub use parser::SshParser;
pub use probe::LINES_BEFORE_MAX;

use crate::session::Protocol;

/// Maximum length of an identification line in octets, including its line end (RFC 4253 section 4.2).
pub const IDENTIFICATION_LEN_MAX: usize = 255;

/// Maximum length of an SSH packet in octets (RFC 4253 section 6.1 requires support of 35,000).
pub const PACKET_LEN_MAX: usize = 35_000;

/// Maximum number of other packets that a side may send before its KEXINIT.
pub const PACKETS_BEFORE_MAX: u8 = 8;

/// The SSH protocol: recognized by port 22, and on any port by an identification line.
pub static PROTOCOL: Protocol = Protocol::new("ssh")
    .in_zeek("ssh")
    .in_eve("ssh")
    .over_streams(&[22], Some(probe::probe))
    .resumed_by(probe::search)
    .following_lines()
    .with_kinds(&["ssh"])
    .with_limits("lines of 255 octets, packets of 35,000 octets")
    .with_standards("RFC 4250, 4251, 4253, 4419, 5656");
