//! What records, messages and transactions state about hosts.

use std::net::IpAddr;

use flowgauge::base::HeaderKind;
use flowgauge::neighbor::{Lldp, Neighbor, NeighborMessage};
use flowgauge::protocols::{dhcp, dns, ftp, kerberos, nbdgm, nbns, ntlm, radius, rdp, smb, smtp, tls};
use flowgauge::session::kit::{Kept, KitMessage};
use flowgauge::session::{Evidence, Text};
use flowgauge::transaction::{Content, Http, Transaction};
use flowgauge::{FlowRecord, FlowView, IpProtocol, Message, Packet, Role, TcpFlags};

use super::host::{Host, Hosts, Lease, Source, text};
use super::system;

/// Weights of evidence for operating systems: of devices about themselves, of authentications and of what their texts name, of
/// user agents, and of handshakes.
const STATED: u8 = 95;
const AUTHENTICATED: u8 = 90;
const NAMED: u8 = 70;
const LEASED: u8 = 60;
const AGENT: u8 = 50;
const INDICATED: u8 = 30;

/// Kinds of names of NetBIOS: of hosts, and of their file services.
const NETBIOS_HOSTS: [u8; 2] = [0x00, 0x20];

/// Most records of a response of DNS that are read.
const RECORD_MAX: usize = 64;

/// Types of DNS records with an address.
const ADDRESSES: [dns::RecordType; 2] = [dns::RecordType::A, dns::RecordType::AAAA];

/// Type of the messages of DHCP by which a server grants an address (RFC 2132 section 9.6).
const ACKNOWLEDGMENT: dhcp::Kind = dhcp::Kind(5);

/// Type of DNS records with the name of an address.
const POINTER: dns::RecordType = dns::RecordType(12);

/// Returns a kept text as a string.
fn string<const N: usize>(kept: Option<&Kept<N>>) -> Option<String> {
    text(&kept?.text().to_str_lossy())
}

/// Returns the MAC address that a text is: six pairs of hexadecimal digits.
fn mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut pairs = text.split(':');
    for octet in &mut mac {
        *octet = u8::from_str_radix(pairs.next()?, 16).ok()?;
    }
    pairs.next().is_none().then_some(mac)
}

/// Returns the address whose name a query asks for: a name below `in-addr.arpa` or `ip6.arpa`.
fn reversed(name: &str) -> Option<IpAddr> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    if let Some(octets) = name.strip_suffix(".in-addr.arpa") {
        let octets: Vec<u8> = octets.rsplit('.').map(|octet| octet.parse().ok()).collect::<Option<_>>()?;
        return <[u8; 4]>::try_from(octets).ok().map(IpAddr::from);
    }
    let digits = name.strip_suffix(".ip6.arpa")?;
    let digits: Vec<u8> = digits
        .rsplit('.')
        .map(|digit| u8::from_str_radix(digit, 16).ok().filter(|_| digit.len() == 1))
        .collect::<Option<_>>()?;
    let octets: Vec<u8> = digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect();
    <[u8; 16]>::try_from(octets).ok().map(IpAddr::from)
}

/// Returns whether a name is one of a host: not that of a service, and without a wildcard.
fn is_host_name(name: &str) -> bool {
    !name.starts_with('_') && !name.contains(['*', ' ', '/', '@', '=', '[', ':'])
}

/// The ends of a flow.
#[derive(Clone, Copy)]
struct Ends {
    client: IpAddr,
    server: IpAddr,
    protocol: IpProtocol,
    server_port: Option<u16>,
}

impl Ends {
    fn of(view: &FlowView<'_>, client: flowgauge::Side) -> Self {
        let key = view.key();
        Self {
            client: key.address(client),
            server: key.address(client.other()),
            protocol: key.protocol(),
            server_port: key.port(client.other()),
        }
    }
}

impl Hosts {
    /// Notes something about a host.
    fn note(&mut self, address: IpAddr, note: impl FnOnce(&mut Host)) {
        if let Some(host) = self.host(address) {
            note(host);
        }
    }

    /// Notes which software offers a service.
    fn note_software(&mut self, ends: Ends, view: &FlowView<'_>, software: &str) {
        let Some(port) = ends.server_port else { return };
        self.note(ends.server, |host| {
            if let Some(service) = host.service(ends.protocol, port, view.start())
                && service.software.is_none()
            {
                service.software = text(software);
            }
        });
    }

    /// Notes the ends of a flow. `is_service` states whether the port of the responder is that of a service: connections for
    /// data have ports for a moment, and without the begin of a flow its initiator may be the server.
    pub fn record(&mut self, record: &FlowRecord, is_service: bool) {
        let (source, destination) = (record.source_address(), record.destination_address());
        let span = (record.start, record.end);
        // The frames of a tunnel are those of its ends.
        let is_tunneled = record.encapsulation.as_ref().is_some_and(|tunnel| {
            let mut inner = tunnel.encapsulation.headers().iter().rev();
            inner
                .find(|header| header.endpoints.is_some() || header.kind == HeaderKind::Ethernet)
                .is_some_and(|header| header.kind != HeaderKind::Ethernet)
        });
        let mac = |mac: Option<[u8; 6]>| mac.filter(|_| !is_tunneled);
        self.note(source, |host| {
            host.note_seen(span.0, span.1);
            host.frame_mac = host.frame_mac.or(mac(record.forward.mac));
        });
        if record.reverse.counters.packet_count == 0 {
            return;
        }
        let application = record.application.filter(|application| application.evidence == Evidence::Content);
        let is_open = match record.protocol() {
            IpProtocol::TCP => {
                let is_accepted = record.reverse.tcp_flags.contains(TcpFlags::SYN);
                let has_data = record.reverse.counters.payload_octet_count > 0;
                is_accepted && !record.reverse.tcp_flags.contains(TcpFlags::RST)
                    || has_data && application.is_some()
            }
            // Any port of a client may be the destination of a datagram.
            _ => application.is_some(),
        };
        self.note(destination, |host| {
            host.note_seen(span.0, span.1);
            host.frame_mac = host.frame_mac.or(mac(record.reverse.mac));
            let name = application.map(|application| application.name);
            let Some(port) = record.destination_port().filter(|_| is_open && is_service) else { return };
            if let Some(service) = host.service(record.protocol(), port, record.start)
                && let Some(name) = name
                && service.application.is_empty()
            {
                service.application = name.as_str().to_owned();
            }
        });
    }

    /// Notes what the first segment of a connection indicates.
    pub fn packet(&mut self, packet: &Packet<'_>) {
        let is_first = packet.tcp.flags.contains(TcpFlags::SYN) && !packet.tcp.flags.contains(TcpFlags::ACK);
        if is_first
            && packet.key.protocol() == IpProtocol::TCP
            && let Some(system) = system::of_syn(packet)
        {
            self.note(packet.key.address(packet.side), |host| {
                host.note_system(system, Source::Tcp, INDICATED);
            });
        }
    }

    /// Notes what a message between neighbors states.
    pub fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        let head = &neighbor.head;
        match &neighbor.message {
            NeighborMessage::Arp(arp) => {
                if let (Some(mac), Some(address)) = (arp.sender_mac, arp.sender_address) {
                    self.note(address, |host| {
                        host.note_seen(head.timestamp, head.timestamp);
                        host.note_mac(mac);
                    });
                }
            }
            // Others may have been forwarded, which no router does.
            NeighborMessage::Ndp(ndp) if head.hop_limit == Some(255) => {
                let sender = head.source_address.zip(ndp.sender_mac);
                let target = ndp.target_address.zip(ndp.target_mac).filter(|_| ndp.ndp_type.0 == 136);
                for (address, mac) in sender.into_iter().chain(target) {
                    self.note(address, |host| {
                        host.note_seen(head.timestamp, head.timestamp);
                        host.note_mac(mac);
                        host.is_router |= ndp.is_router == Some(true);
                    });
                }
            }
            NeighborMessage::Lldp(lldp) => self.lldp(neighbor, lldp),
            NeighborMessage::Cdp(cdp) => {
                let texts = [cdp.device_id, cdp.software_version.or(cdp.platform), cdp.port_id];
                for address in cdp.port_addresses.iter().chain(&cdp.management_addresses) {
                    self.device(neighbor, *address, Source::Cdp, texts);
                }
            }
            _ => {}
        }
    }

    fn lldp(&mut self, neighbor: &Neighbor<'_>, lldp: &Lldp<'_>) {
        let port = lldp.port_id.map(|port| port.to_string());
        let port = lldp.port_description.or(port.as_deref().map(Text::from));
        let texts = [lldp.system_name, lldp.system_description, port];
        for address in &lldp.management_addresses {
            self.device(neighbor, *address, Source::Lldp, texts);
        }
    }

    /// Notes what a device announces: its name, its system, and its port.
    fn device(
        &mut self,
        neighbor: &Neighbor<'_>,
        address: IpAddr,
        source: Source,
        [name, system, port]: [Option<Text<'_>>; 3],
    ) {
        self.note(address, |host| {
            host.note_seen(neighbor.head.timestamp, neighbor.head.timestamp);
            let of = |text: Option<Text<'_>>| text.map(|text| text.to_str_lossy().into_owned());
            of(name).iter().for_each(|name| host.note_name(name, source));
            of(system)
                .iter()
                .for_each(|system| host.note_system(&system.replace(['\r', '\n'], " "), source, STATED));
            of(port).iter().for_each(|port| host.note_port(port));
        });
    }

    /// Notes what a message states that is no part of a transaction.
    pub fn message(&mut self, view: &FlowView<'_>, from: Role, message: &Message<'_>) {
        match message {
            Message::Dns(dns::Message::Response(response)) => self.dns(response),
            Message::Mdns(dns::Message::Response(response)) => self.answers(response, Source::Mdns),
            Message::Llmnr(dns::Message::Response(response)) => self.answers(response, Source::Llmnr),
            Message::Smtp(smtp::Message::Greeting(greeting)) if greeting.code == 220 => {
                let text = greeting.text.to_str_lossy();
                let ends = Ends::of(view, view.initiator());
                let name =
                    text.split_whitespace().next().filter(|name| name.contains('.')).map(str::to_owned);
                self.note(ends.server, |host| {
                    name.iter().for_each(|name| host.note_name(name, Source::Smtp));
                    system::of_text(&text)
                        .into_iter()
                        .for_each(|own| host.note_system(own, Source::Smtp, NAMED));
                });
                self.note_software(ends, view, &text);
            }
            Message::Ftp(ftp::Message::Greeting(greeting)) if greeting.code == 220 => {
                self.note_software(Ends::of(view, view.initiator()), view, &greeting.text.to_str_lossy());
            }
            Message::Tls(tls::Message::ClientHello(hello))
            | Message::Dtls(tls::Message::ClientHello(hello)) => {
                if let Some(name) = hello.server_name() {
                    // The initiator of a flow that began before the capture may be the server.
                    let is_client = from == Role::Client;
                    let server = Ends::of(view, view.initiator()).server;
                    let name = name.to_str_lossy();
                    if is_client && is_host_name(&name) {
                        self.note(server, |host| host.note_name(&name.to_ascii_lowercase(), Source::Sni));
                    }
                }
            }
            Message::Kit(kit) => self.kit(Ends::of(view, view.initiator()), view, kit),
            _ => {}
        }
    }

    /// Notes the names of the addresses in an answer.
    fn answers(&mut self, response: &dns::DnsMessage<'_>, source: Source) {
        let addresses = response.records().filter(|(_, record)| ADDRESSES.contains(&record.record_type));
        for (_, record) in addresses.take(RECORD_MAX) {
            if let Ok(address) = record.data.to_string().parse() {
                self.note(address, |host| host.note_name(&record.name.to_string(), source));
            }
        }
    }

    /// Notes what a transaction states.
    pub fn transaction(&mut self, view: &FlowView<'_>, transaction: &Transaction) {
        let ends = Ends::of(view, transaction.client());
        match &transaction.content {
            Content::Http(http) => self.http(ends, view, http),
            Content::X509(certificate) if certificate.role == Role::Server && certificate.position == 0 => {
                let name = certificate.dns_names.first().map(|name| &**name);
                let common =
                    || certificate.subject.split(',').find_map(|part| part.trim().strip_prefix("CN="));
                if let Some(name) = name.or_else(common).filter(|name| is_host_name(name)) {
                    self.note(ends.server, |host| host.note_name(name, Source::Certificate));
                }
            }
            Content::Ssh(ssh) => {
                for (address, line) in [(ends.client, &ssh.client), (ends.server, &ssh.server)] {
                    let system = line.as_deref().and_then(system::of_text);
                    system
                        .into_iter()
                        .for_each(|own| self.note(address, |host| host.note_system(own, Source::Ssh, NAMED)));
                }
                if let Some(software) = ssh.server.as_deref().and_then(|line| line.splitn(3, '-').nth(2)) {
                    self.note_software(ends, view, software);
                }
            }
            Content::Mail(mail) => {
                if let Some(name) = mail.helo.as_deref().filter(|name| is_host_name(name)) {
                    self.note(ends.client, |host| host.note_name(name, Source::Smtp));
                }
            }
            Content::Ftp(ftp) => {
                // The user is known once the server accepted the password.
                if let Some(user) = ftp.user.as_deref().filter(|user| !ftp::is_anonymous(user.as_bytes())) {
                    self.note(ends.client, |host| host.note_user(user, Source::Ftp));
                }
            }
            _ => {}
        }
    }

    /// Notes the names of the addresses in a response of DNS: those that were asked for.
    fn dns(&mut self, response: &dns::DnsMessage<'_>) {
        let states_name = |record_type| record_type == POINTER || ADDRESSES.contains(&record_type);
        if !response.answers().any(|record| states_name(record.record_type)) {
            return;
        }
        let Some(question) = response.questions().next() else { return };
        let query = question.name.to_string().to_ascii_lowercase();
        let reversed = reversed(&query);
        for record in response.answers().take(RECORD_MAX) {
            if let Some(address) = reversed.filter(|_| record.record_type == POINTER) {
                self.note(address, |host| host.note_name(&record.data.to_string(), Source::Dns));
            }
            if ADDRESSES.contains(&record.record_type)
                && let Ok(address) = record.data.to_string().parse()
            {
                self.note(address, |host| host.note_name(&query, Source::Dns));
            }
        }
    }

    fn http(&mut self, ends: Ends, view: &FlowView<'_>, http: &Http) {
        if let Some(system) = http.user_agent.as_deref().and_then(system::of_text) {
            self.note(ends.client, |host| host.note_system(system, Source::Http, AGENT));
        }
        if http.status.is_some_and(|status| ![401, 407].contains(&status)) {
            self.note(ends.client, |host| {
                // Accounts of machines are no users; the host states its name itself.
                let is_user = |user: &&str| !user.ends_with('$');
                let user = http.user_name.as_deref().filter(is_user);
                user.iter().for_each(|user| host.note_user(user, Source::Ntlm));
                http.client_host.iter().for_each(|name| host.note_name(name, Source::Ntlm));
            });
        }
        let host = http.host.as_deref().map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
        // The host of a request to a proxy is another one.
        let is_proxy = http.method.as_deref() == Some("CONNECT")
            || http
                .target
                .as_deref()
                .is_some_and(|target| target.contains("://") && !target.starts_with('/'));
        if let Some(name) = host.filter(|name| is_host_name(name) && http.status.is_some() && !is_proxy) {
            self.note(ends.server, |host| host.note_name(&name.to_ascii_lowercase(), Source::Http));
        }
        if let Some(server) = http.server.as_deref() {
            self.note_software(ends, view, server);
            if let Some(system) = system::of_text(server) {
                self.note(ends.server, |host| host.note_system(system, Source::Http, NAMED));
            }
        }
    }

    /// Notes what a message of DHCP states: the client names itself in its requests, and the server the address.
    fn dhcp(&mut self, entry: &dhcp::Entry) {
        let Some(client) = string(entry.client_hardware_address.as_ref()) else { return };
        let name = string(entry.full_name.as_ref()).or_else(|| string(entry.host_name.as_ref()));
        let class = string(entry.vendor_class.as_ref());
        if entry.message_type != Some(ACKNOWLEDGMENT) {
            if name.is_some() || class.is_some() {
                let lease = self.lease(client);
                *lease = Lease { name, system: class.as_deref().and_then(system::of_vendor_class), ..*lease };
                lease.count += 1;
            }
            return;
        }
        let Some(address) = entry.assigned_address.or(entry.client_address) else { return };
        let lease = self.leases.get(&client).cloned().unwrap_or_default();
        self.note(address, |host| {
            mac(&client).into_iter().for_each(|mac| host.note_mac(mac));
            lease.name.or(name).iter().for_each(|name| host.note_name(name, Source::Dhcp));
            lease.system.iter().for_each(|own| host.note_system(own, Source::Dhcp, LEASED));
        });
    }

    /// Notes what a row of the kit states.
    fn kit(&mut self, ends: Ends, view: &FlowView<'_>, message: &KitMessage<'_>) {
        let Ends { client, server, .. } = ends;
        if let Some(entry) = message.get::<dhcp::Entry>() {
            self.dhcp(entry);
        } else if let Some(logon) = message.get::<ntlm::Authentication>() {
            self.ntlm(ends, logon);
        } else if let Some(exchange) = message.get::<kerberos::Exchange>() {
            self.kerberos(client, exchange);
        } else if let Some(exchange) = message.get::<nbns::Exchange>() {
            self.netbios(ends, exchange);
        } else if let Some(datagram) = message.get::<nbdgm::Datagram>() {
            let address = datagram.stated_address.unwrap_or(client);
            let kind = datagram.source_name_kind.map(|kind| kind.0);
            let source = string(datagram.source_name.as_ref())
                .filter(|_| kind.is_some_and(|kind| NETBIOS_HOSTS.contains(&kind)));
            self.note(address, |host| source.iter().for_each(|name| host.note_name(name, Source::Netbios)));
        } else if let Some(connection) = message.get::<rdp::Connection>() {
            let name = string(connection.client_host.as_ref());
            let user = string(connection.cookie.as_ref());
            self.note(client, |host| {
                name.iter().for_each(|name| host.note_name(name, Source::Rdp));
                user.iter().for_each(|user| host.note_user(user, Source::Rdp));
            });
        } else if let Some(connection) = message.get::<smb::Connection>() {
            for (address, own) in [(client, &connection.client_os), (server, &connection.server_os)] {
                let own = string(own.as_ref());
                self.note(address, |host| {
                    own.iter().for_each(|own| host.note_system(own, Source::Smb, AUTHENTICATED))
                });
            }
            if let Some(dialect) = connection.dialect {
                self.note_software(ends, view, &format!("dialect {dialect}"));
            }
        } else if let Some(exchange) = message.get::<radius::Exchange>()
            && let Some(address) = exchange.framed_address
            && let Some(user) = string(exchange.user_name.as_ref())
        {
            self.note(address, |host| host.note_user(&user, Source::Radius));
        }
    }

    fn ntlm(&mut self, Ends { client, server, .. }: Ends, logon: &ntlm::Authentication) {
        let name = string(logon.client_host.as_ref());
        let account = string(logon.user_name.as_ref()).filter(|_| logon.is_accepted != Some(false));
        let user = string(Some(&logon.user()));
        self.note(client, |host| {
            name.iter().for_each(|name| host.note_name(name, Source::Ntlm));
            // The account of a machine is its name.
            match account.as_deref().map(|account| account.strip_suffix('$')) {
                Some(Some(machine)) => host.note_name(machine, Source::Ntlm),
                Some(None) => user.iter().for_each(|user| host.note_user(user, Source::Ntlm)),
                None => {}
            }
        });
        let name = string(logon.server_dns_host.as_ref()).or_else(|| string(logon.server_host.as_ref()));
        let version = string(logon.server_version.as_ref()).and_then(|version| system::windows(&version));
        self.note(server, |host| {
            name.iter().for_each(|name| host.note_name(name, Source::Ntlm));
            version.iter().for_each(|own| host.note_system(own, Source::Ntlm, AUTHENTICATED));
        });
    }

    fn kerberos(&mut self, client: IpAddr, exchange: &kerberos::Exchange) {
        let host_name = string(exchange.client_host.as_ref());
        let is_granted = exchange.reply_type.is_some() && exchange.error.is_none();
        let principal = string(exchange.client_name.as_ref()).filter(|_| is_granted);
        let realm = string(exchange.client_realm.as_ref());
        self.note(client, |host| {
            host_name.iter().for_each(|name| host.note_name(name, Source::Kerberos));
            let Some(principal) = principal else { return };
            // The account of a machine is its name.
            match principal.strip_suffix('$') {
                Some(machine) => host.note_name(machine, Source::Kerberos),
                None => {
                    let realm = realm.map(|realm| format!("@{realm}")).unwrap_or_default();
                    host.note_user(&(principal + &realm), Source::Kerberos);
                }
            }
        });
    }

    fn netbios(&mut self, Ends { server, .. }: Ends, exchange: &nbns::Exchange) {
        if exchange.is_group == Some(true) {
            return;
        }
        if let Some(text) = string(exchange.hardware_address.as_ref())
            && let Some(mac) = mac(&text)
        {
            self.note(server, |host| host.note_mac(mac));
        }
        let kind = exchange.name_kind.map(|kind| kind.0);
        let name = string(exchange.queried_name.as_ref());
        let Some(name) = name.filter(|_| kind.is_some_and(|kind| NETBIOS_HOSTS.contains(&kind))) else {
            return;
        };
        let owners: Vec<IpAddr> =
            exchange.owners.iter().filter_map(|owner| owner.to_string().parse().ok()).collect();
        let is_refused = exchange.result.is_some_and(|result| result.0 != 0);
        if is_refused {
            return;
        }
        for owner in &owners {
            self.note(*owner, |host| host.note_name(&name, Source::Netbios));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_addresses_are_read_backwards() {
        assert_eq!(reversed("4.3.2.1.in-addr.arpa"), Some("1.2.3.4".parse().unwrap()));
        let name = format!("{}8.b.d.0.1.0.0.2.ip6.arpa.", "0.".repeat(24));
        assert_eq!(reversed(&name), Some("2001:db8::".parse().unwrap()));
        assert_eq!(reversed("3.2.1.in-addr.arpa"), None);
        assert_eq!(reversed("www.example"), None);
        assert_eq!(reversed("10.3.2.1.ip6.arpa"), None);
    }

    #[test]
    fn addresses_of_hardware_are_six_pairs() {
        assert_eq!(mac("02:00:00:00:00:0a"), Some([2, 0, 0, 0, 0, 10]));
        assert_eq!(mac("02:00:00:00:00"), None);
        assert_eq!(mac("02:00:00:00:00:0a:01"), None);
    }
}
