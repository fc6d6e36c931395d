//! Zeek's names of application protocols.

use crate::base::{Evidence, IpProtocol};
use crate::export::LoggedFlow;
use crate::protocols::Standard;
use crate::record::FlowRecord;
use crate::session::Protocols as _;
use crate::tracker::FlowView;

/// Returns the names of a flow's protocols, joined by commas.
pub(super) fn services(flow: &LoggedFlow, view: &FlowView<'_>) -> String {
    let mut names = String::new();
    let is_tcp = view.key().protocol() == IpProtocol::TCP;
    flow.for_each_service(view, |name| {
        let Some(name) = service(name, is_tcp) else { return };
        if !names.is_empty() {
            names.push(',');
        }
        names.push_str(name);
    });
    names
}

/// Returns the name of the application of a record, if its exporter proved it by content.
pub(super) fn record_services(record: &FlowRecord) -> String {
    let proven = record.application.filter(|application| application.evidence == Evidence::Content);
    let is_tcp = record.protocol() == IpProtocol::TCP;
    let name = proven.and_then(|application| service(application.name.as_str(), is_tcp));
    name.unwrap_or_default().to_owned()
}

/// Returns Zeek's name of an application protocol; `None` for those that it does not analyze.
fn service(name: &str, is_tcp: bool) -> Option<&'static str> {
    Standard::of_name(name)?.zeek_name(is_tcp)
}
