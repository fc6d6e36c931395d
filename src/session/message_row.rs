//! What precedes a message in a row: its time, its flow, its sender and its kind; and events of sessions as rows.

use std::net::IpAddr;

use super::protocol::Role;
use super::receiver::{MessageMeta, SessionEvent};
use crate::base::Timestamp;
use crate::record::CommunityId;
use crate::row::{Column, Name, Row, TableInfo, TableRow, Union, Visitor};
use crate::tracker::FlowView;

/// Time, flow, sender and kind of a message. With the message as the second part, it is one row:
/// `(MessageHead, Request)`. The source is the client, as determined when the session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageHead {
    /// Capture time of the octets that completed the message.
    pub timestamp: Timestamp,
    /// Community ID of the flow.
    pub community_id: CommunityId,
    /// Time of the first packet of the flow.
    pub start: Timestamp,
    /// Name of the protocol.
    pub protocol: &'static str,
    /// Address and port of the client.
    pub source: (IpAddr, Option<u16>),
    /// Address and port of the server.
    pub destination: (IpAddr, Option<u16>),
    /// Role of the sender.
    pub role: Role,
    /// Kind of the message: the part of the table's name after the dot.
    pub kind: &'static str,
}

impl MessageHead {
    /// Creates the head of a message, whose kind is that of a table.
    #[must_use]
    pub fn new(
        view: &FlowView<'_>,
        community_id: CommunityId,
        meta: &MessageMeta,
        table: &TableInfo,
    ) -> Self {
        let client = if meta.from == Role::Client { meta.side } else { meta.side.other() };
        let end = |side| (view.key().address(side), view.key().port(side));
        Self {
            timestamp: meta.timestamp,
            community_id,
            start: view.start(),
            protocol: meta.protocol.name(),
            source: end(client),
            destination: end(client.other()),
            role: meta.from,
            kind: table.kind(),
        }
    }
}

crate::table! {
    /// Time, flow, sender and kind of a message.
    impl "session.head" for MessageHead as head {
        /// Time of the packet that completed the message; for a report about a gap, the time at which the gap was due.
        "timestamp": Timestamp = head.timestamp;
        /// Community ID of the flow.
        "community_id": CommunityId = head.community_id;
        /// Time of the first packet of the flow.
        "start": Timestamp = head.start;
        /// Name of the protocol.
        "protocol": Name = Name(head.protocol);
        /// Address of the client, as determined when the session began.
        "source_address": IpAddr = head.source.0;
        /// Port of the client.
        "source_port": Option<u16> = head.source.1;
        /// Address of the server.
        "destination_address": IpAddr = head.destination.0;
        /// Port of the server.
        "destination_port": Option<u16> = head.destination.1;
        /// Role of the sender.
        "role": Role = head.role;
        /// Kind of the message.
        "message": Name = Name(head.kind);
    }
}

/// A protocol was recognized.
struct Recognized(Name, Name);

crate::table! {
    /// A protocol was recognized in a flow.
    impl "session.recognized" for Recognized as event {
        /// Name of the protocol.
        "protocol": Name = event.0;
        /// Evidence for the protocol.
        "evidence": Name = event.1;
    }
}

/// A parser stopped.
struct Stopped(Name, u64);

crate::table! {
    /// A parser stopped with a fault, and the rest of the flow is not parsed.
    impl "session.stopped" for Stopped as event {
        /// Reason for which the parser stopped.
        "fault": Name = event.0;
        /// Number of octets of the stream before those at which the parser stopped; zero for datagrams.
        "offset": u64 [octets] = event.1;
    }
}

/// Messages are suppressed.
struct Suppressed;

crate::table! {
    /// Further messages of the flow are suppressed.
    impl "session.suppressed" for Suppressed as event {}
}

static RECOGNIZED: TableInfo = TableInfo::of::<Recognized>();
static STOPPED: TableInfo = TableInfo::of::<Stopped>();
static SUPPRESSED: TableInfo = TableInfo::of::<Suppressed>();

impl Union for SessionEvent {
    fn tables() -> Vec<&'static TableInfo> {
        vec![&RECOGNIZED, &STOPPED, &SUPPRESSED]
    }

    fn row(&self) -> TableRow<'_> {
        TableRow::new(self.table(), self)
    }
}

impl SessionEvent {
    const fn table(&self) -> &'static TableInfo {
        match self {
            Self::Recognized { .. } => &RECOGNIZED,
            Self::Stopped { .. } => &STOPPED,
            Self::Suppressed { .. } => &SUPPRESSED,
        }
    }
}

impl Row for SessionEvent {
    fn own_columns(&self) -> Vec<&'static Column> {
        self.table().columns.iter().collect()
    }

    fn shape_id(&self) -> usize {
        std::ptr::from_ref(self.table()).addr()
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) {
        match self {
            Self::Recognized { protocol, evidence } => {
                Recognized(Name(protocol.name()), Name(evidence.name())).visit(visitor);
            }
            Self::Stopped { fault, offset, .. } => Stopped(Name(fault.reason()), *offset).visit(visitor),
            Self::Suppressed { .. } => Suppressed.visit(visitor),
        }
    }
}
