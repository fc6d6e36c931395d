//! Rows of `quic.log`.

use crate::protocols::quic::Version;
use crate::transaction;

/// A connection of QUIC in `quic.log`, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Quic<'a> {
    quic: &'a transaction::Quic,
}

impl<'a> Quic<'a> {
    pub(super) const fn new(quic: &'a transaction::Quic) -> Self {
        Self { quic }
    }
}

/// Returns Zeek's name of a version.
fn version_name(version: Option<Version>) -> String {
    match version.map_or(0, |version| version.0) {
        1 => "1".into(),
        0x6b33_43cf => "quicv2".into(),
        number @ 0xff00_0000..=0xff00_00ff => format!("draft-{}", number & 0xff),
        number => format!("unknown-{number:x}"),
    }
}

crate::table! {
    /// Connections of QUIC.
    impl['a] "zeek.quic" for Quic<'a> as row {
        /// `quic_version`: `1`, `quicv2`, `draft-29`, or `unknown-` and hexadecimal digits.
        "version": String = version_name(row.quic.packets.quic_version);
        /// `client_dcid`.
        "client_initial_dcid": Option<&'a str> => row.quic.packets.client_dcid.as_deref();
        /// `client_scid`.
        "client_scid": Option<&'a str> => row.quic.packets.client_scid.as_deref();
        /// `server_scid`.
        "server_scid": Option<&'a str> => row.quic.packets.server_scid.as_deref();
        /// `server_name`.
        "server_name": Option<&'a str> => row.quic.tls.server_name.as_deref();
        /// The first application protocol that the client offers.
        "client_protocol": Option<&'a str> => row.quic.tls.offered_alpn.first().map(|name| &**name);
        /// Letters of the packets with a message: I and S for one with a hello, R for Retry, C for a close, in lower case for the
        /// server; other packets are not shown.
        "history": &'a str = &*row.quic.history;
    }
}
