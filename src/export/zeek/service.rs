//! Zeek's names of application protocols.

use crate::base::IpProtocol;
use crate::export::LoggedFlow;
use crate::tracker::FlowView;

/// Returns the names of a flow's protocols, joined by commas.
pub(super) fn services(flow: &LoggedFlow, view: &FlowView<'_>) -> String {
    let mut names = String::new();
    let protocol = view.key().protocol();
    flow.for_each_service(view, |name| {
        if !names.is_empty() {
            names.push(',');
        }
        names.push_str(service(name, protocol).unwrap_or(name));
    });
    names
}

/// Returns Zeek's name of an application protocol, if it is another one.
fn service(name: &str, protocol: IpProtocol) -> Option<&'static str> {
    let is_tcp = protocol == IpProtocol::TCP;
    Some(match name {
        "tls" | "dtls" => "ssl",
        "quic" => "quic,ssl",
        "dns" | "mdns" | "llmnr" | "netbios-ns" => "dns",
        "kerberos" if is_tcp => "krb_tcp",
        "kerberos" => "krb",
        "ldap" if is_tcp => "ldap_tcp",
        "ldap" => "ldap_udp",
        "postgres" => "postgresql",
        _ => return None,
    })
}
