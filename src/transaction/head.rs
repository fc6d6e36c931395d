//! What precedes the content of a transaction in a row.

use std::net::IpAddr;

use super::content::Transaction;
use crate::base::Timestamp;
use crate::record::CommunityId;
use crate::row::{Name, TableInfo};
use crate::session::Lack;
use crate::tracker::FlowView;

/// Times, flow and kind of a transaction. With its content as the second part, it is one row: `(TransactionHead, Http)`. The
/// source is the client, as determined when the session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionHead {
    /// Time of the packet that completed the first message.
    pub timestamp: Timestamp,
    /// Time of the packet that completed the last message.
    pub end: Timestamp,
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
    /// Kind of the transaction: the part of the table's name after the dot.
    pub kind: &'static str,
    /// What the transaction lacks.
    pub lacks: Option<Lack>,
}

impl TransactionHead {
    /// Creates the head of a transaction, whose kind is that of a table.
    #[must_use]
    pub fn new(
        view: &FlowView<'_>,
        community_id: CommunityId,
        transaction: &Transaction,
        table: &TableInfo,
    ) -> Self {
        let span = &transaction.span;
        let end = |side| (view.key().address(side), view.key().port(side));
        Self {
            timestamp: span.start,
            end: span.end,
            community_id,
            start: view.start(),
            protocol: span.protocol.name(),
            source: end(span.client),
            destination: end(span.client.other()),
            kind: table.kind(),
            lacks: transaction.lacks,
        }
    }
}

crate::table! {
    /// Times, flow and kind of a transaction.
    impl "transaction.head" for TransactionHead as head {
        /// Time of the packet that completed the first message of the transaction.
        "timestamp": Timestamp = head.timestamp;
        /// Time of the packet that completed its last message.
        "end": Timestamp = head.end;
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
        /// Kind of the transaction.
        "kind": Name = Name(head.kind);
        /// What the transaction lacks: limit, request, response, end or body.
        "lacks": Option<Lack> = head.lacks;
    }
}
