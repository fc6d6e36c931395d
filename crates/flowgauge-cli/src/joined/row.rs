//! What is joined to a flow record, as a row.

use flowgauge::protocols::{NameEvidence, ServerName};

use super::locations::Location;

/// What is joined to a record.
#[derive(Debug, Default)]
pub(super) struct Joined<'a> {
    pub(super) label: Option<&'a str>,
    pub(super) server_name: Option<&'a ServerName>,
    /// Names of the hosts: the initiator, and the responder.
    pub(super) names: [Option<&'a str>; 2],
    pub(super) source: Option<&'a Location>,
    pub(super) destination: Option<&'a Location>,
}

impl Joined<'_> {
    fn evidence(&self) -> Option<NameEvidence> {
        self.server_name.map(|server| server.evidence)
    }
}

/// Returns a text of a location.
fn text(location: Option<&Location>, of: fn(&Location) -> &Option<String>) -> Option<&str> {
    location.and_then(|location| of(location).as_deref())
}

flowgauge::table! {
    /// What is joined to a flow record: a label, the name of the server, names of hosts, locations.
    impl['a] "joined" for Joined<'a> as row {
        /// Label of the first rule of `--label` that the flow matches.
        "label": Option<&'a str> = row.label;
        /// Name of the server, in lower case and without a port.
        "server_name": Option<&'a str> = row.server_name.map(|server| &*server.name);
        /// What states the name: tls or quic (ClientHello), http (host of a request), or dns (an answer to the initiator).
        "server_name_evidence": Option<NameEvidence> = row.evidence();
        /// Most reliable name of the initiator that is known at the end of the flow.
        "source_name": Option<&'a str> = row.names[0];
        /// Most reliable name of the responder that is known at the end of the flow.
        "destination_name": Option<&'a str> = row.names[1];
        /// Country of the initiator, ISO 3166-1.
        "source_country": Option<&'a str> = text(row.source, |location| &location.country);
        /// City of the initiator, in English.
        "source_city": Option<&'a str> = text(row.source, |location| &location.city);
        /// Autonomous system of the initiator.
        "source_asn": Option<u32> = row.source.and_then(|location| location.asn);
        /// Organization of the autonomous system of the initiator.
        "source_as_organization": Option<&'a str> = text(row.source, |location| &location.organization);
        /// Country of the responder, ISO 3166-1.
        "destination_country": Option<&'a str> = text(row.destination, |location| &location.country);
        /// City of the responder, in English.
        "destination_city": Option<&'a str> = text(row.destination, |location| &location.city);
        /// Autonomous system of the responder.
        "destination_asn": Option<u32> = row.destination.and_then(|location| location.asn);
        /// Organization of the autonomous system of the responder.
        "destination_as_organization": Option<&'a str> = text(row.destination, |location| &location.organization);
    }
}
