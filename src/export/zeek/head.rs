//! The columns with which most logs begin.

use std::net::IpAddr;

use crate::base::{FlowKey, Ports, Side, Timestamp};
use crate::export::Uid;
use crate::record::FlowRecord;
use crate::row::{List, ListOf};
use crate::tracker::FlowView;
use crate::transaction::FlowOrigin;

/// Time, identifier and endpoints of a connection, with which most logs begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// Time of the row.
    pub ts: Timestamp,
    /// Identifier of the connection.
    pub uid: Uid,
    /// Address and port of the originator.
    pub orig: (IpAddr, u16),
    /// Address and port of the responder.
    pub resp: (IpAddr, u16),
}

impl Head {
    /// Returns the head of a row about a flow.
    pub(super) fn new(ts: Timestamp, uid: Uid, view: &FlowView<'_>) -> Self {
        let [orig, resp] = ends(view.key(), view.initiator());
        Self { ts, uid, orig, resp }
    }

    /// Returns the head of the row of a record from another program.
    pub(super) fn of_record(uid: Uid, record: &FlowRecord) -> Self {
        let [orig, resp] = ends(&record.key, record.initiator);
        Self { ts: record.start, uid, orig, resp }
    }
}

/// Returns address and port of the initiator, then of the responder: 0 for protocols without ports, and types for ICMP, or
/// type and code if it has no reply.
fn ends(key: &FlowKey, source: Side) -> [(IpAddr, u16); 2] {
    let ports = match key.ports() {
        Ports::Transport(a, b) => [a, b],
        Ports::Icmp { kind, counterpart, .. } => [kind.into(), counterpart.into()],
        Ports::None => [0, 0],
    };
    let end = |side: Side| (key.address(side), ports.get(side.index()).copied().unwrap_or_default());
    [end(source), end(source.other())]
}

/// Time, identifiers and endpoints, with which the log of files begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileHead {
    /// Time and connection.
    pub head: Head,
    /// Identifier of the file.
    pub fuid: Uid,
}

impl FileHead {
    /// Returns the head of a row about a file.
    pub(super) const fn new(head: Head, fuid: Uid) -> Self {
        Self { head, fuid }
    }
}

/// Time and identifiers of the connections, with which the log of an exchange across connections begins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrossingHead {
    /// Time of the row.
    pub ts: Timestamp,
    /// Identifiers of the connections.
    pub uids: Vec<Uid>,
}

impl CrossingHead {
    /// Returns the head of a row about an exchange in these flows.
    pub(super) fn new(ts: Timestamp, flows: &[FlowOrigin], seed: u64) -> Self {
        Self { ts, uids: flows.iter().map(|flow| Uid::of_origin(flow, seed)).collect() }
    }
}

crate::table! {
    /// The columns with which the log of exchanges across connections begins.
    impl "zeek.crossing_head" for CrossingHead as row {
        /// Time of the first message.
        "ts": Timestamp = row.ts;
        /// Identifiers of the connections of the messages.
        "uids": ListOf<Uid> [set] => List(row.uids.iter().copied());
    }
}

crate::table! {
    /// The columns with which most logs begin.
    impl "zeek.head" for Head as row {
        /// Time of the first packet of the connection, or of the packet that completed the first message of the row.
        "ts": Timestamp = row.ts;
        /// Identifier of the connection: `C` and 17 digits of base 62, derived from a seed, the flow key and the start.
        "uid": Uid = row.uid;
        /// Address of the initiator.
        "id.orig_h": IpAddr = row.orig.0;
        /// Port of the initiator; for ICMP the type; 0 for protocols without ports.
        "id.orig_p": u16 = row.orig.1;
        /// Address of the responder.
        "id.resp_h": IpAddr = row.resp.0;
        /// Port of the responder; for ICMP the type of the reply, or the code if there is none.
        "id.resp_p": u16 = row.resp.1;
    }
}

crate::table! {
    /// The columns with which the log of files begins.
    impl "zeek.file_head" for FileHead as row {
        /// Time of the packet with the first octets of the file.
        "ts": Timestamp = row.head.ts;
        /// Identifier of the file: `F` and 17 digits of base 62, derived from that of the connection.
        "fuid": Uid = row.fuid;
        /// Identifier of the connection.
        "uid": Uid = row.head.uid;
        /// Address of the initiator.
        "id.orig_h": IpAddr = row.head.orig.0;
        /// Port of the initiator.
        "id.orig_p": u16 = row.head.orig.1;
        /// Address of the responder.
        "id.resp_h": IpAddr = row.head.resp.0;
        /// Port of the responder.
        "id.resp_p": u16 = row.head.resp.1;
    }
}
