//! Frames that a switch or a host mirrors to this host, encapsulated in datagrams.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::config::SourceConfig;
use super::datagram::{DatagramSocket, RECEIVE_COUNT, ReceivedDatagram};
use super::error::{Error, resolve, socket_error};
use super::interfaces::Interfaces;
use super::memory::Memory;
use super::stats::{SourceStats, Tally};
use super::warning::Warning;
use super::{IDLE_INTERVAL, Interface, Next, Source, TimeResolution, now};
use crate::base::{EtherType, Frame, FrameBatch, IpProtocol, LinkType, StopHandle};
use crate::wire::{erspan, geneve, gre, tzsp, vxlan};

/// Encapsulation of the frames of a mirror session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MirrorEncapsulation {
    /// VXLAN (RFC 7348); usual UDP port 4789.
    Vxlan,
    /// VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe); usual UDP port 4790.
    VxlanGpe,
    /// GENEVE (RFC 8926); usual UDP port 6081.
    Geneve,
    /// TaZmen Sniffer Protocol; usual UDP port 37008.
    Tzsp,
    /// GRE (RFC 2784, RFC 2890) with ERSPAN of types I, II and III, bridged Ethernet, or IP packets; over UDP (RFC
    /// 8086, usual port 4754) or directly over IP.
    Gre,
}

impl MirrorEncapsulation {
    /// All encapsulations.
    pub const ALL: [Self; 5] = [Self::Vxlan, Self::VxlanGpe, Self::Geneve, Self::Tzsp, Self::Gre];

    /// Returns the name of the encapsulation, such as `vxlan`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vxlan => "vxlan",
            Self::VxlanGpe => "vxlan-gpe",
            Self::Geneve => "geneve",
            Self::Tzsp => "tzsp",
            Self::Gre => "gre",
        }
    }

    /// Returns the frame in the payload of a datagram; `None` if there is none.
    fn frame(self, payload: &[u8]) -> Option<Mirrored<'_>> {
        match self {
            Self::Vxlan => {
                let vni = vxlan::vni(payload)?;
                Mirrored::new(Some(vni), LinkType::ETHERNET, payload, vxlan::HEADER_LEN)
            }
            Self::VxlanGpe => {
                let (vni, protocol) = vxlan::gpe(payload)?;
                Mirrored::new(Some(vni), link_type(protocol)?, payload, vxlan::HEADER_LEN)
            }
            Self::Geneve => {
                let header = geneve::header(payload)?;
                Mirrored::new(Some(header.vni), link_type(header.protocol)?, payload, header.len)
            }
            Self::Tzsp => {
                let header = tzsp::header(payload)?;
                let mut frame = Mirrored::new(None, header.link_type, payload, header.len)?;
                frame.original_len = header.original_len.map(u32::from);
                Some(frame)
            }
            Self::Gre => of_gre(payload),
        }
    }
}

/// Returns the frame behind a GRE header.
fn of_gre(payload: &[u8]) -> Option<Mirrored<'_>> {
    let header = gre::header(payload).filter(|header| header.version == 0)?;
    let session = |id: u16| Some(u32::from(id));
    let rest = payload.get(header.len..)?;
    let erspan = match header.protocol {
        // Only type I has no sequence number, and no header of its own.
        gre::ERSPAN_II if !header.has_sequence => {
            return Mirrored::new(None, LinkType::ETHERNET, rest, 0);
        }
        gre::ERSPAN_II => erspan::type_2(rest)?,
        gre::ERSPAN_III => erspan::type_3(rest)?,
        gre::PPP => return Mirrored::new(header.key, LinkType::PPP, rest, 0),
        protocol => {
            let key = header.virtual_subnet().or(header.key);
            return Mirrored::new(key, link_type(protocol)?, rest, 0);
        }
    };
    let link_type = if erspan.is_ip { LinkType::RAW } else { LinkType::ETHERNET };
    Mirrored::new(session(erspan.session_id), link_type, rest, erspan.len)
}

/// Returns the link type of a frame that an EtherType identifies.
fn link_type(protocol: EtherType) -> Option<LinkType> {
    match protocol {
        EtherType::ETHERNET_BRIDGING => Some(LinkType::ETHERNET),
        EtherType::IPV4 | EtherType::IPV6 => Some(LinkType::RAW),
        _ => None,
    }
}

impl fmt::Display for MirrorEncapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MirrorEncapsulation {
    type Err = String;

    /// Parses the [name](Self::name) of an encapsulation. The error lists the names.
    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|encapsulation| encapsulation.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown encapsulation `{name}`; use one of {names}")
        })
    }
}

/// A frame in a datagram.
struct Mirrored<'a> {
    /// Identifier of the virtual network or of the mirror session, if the encapsulation has one.
    session: Option<u32>,
    link_type: LinkType,
    data: &'a [u8],
    /// Length of the frame before the sender truncated it, if it is known.
    original_len: Option<u32>,
}

impl<'a> Mirrored<'a> {
    /// Creates the frame behind a header of `header_len` octets; `None` if nothing follows.
    fn new(session: Option<u32>, link_type: LinkType, payload: &'a [u8], header_len: usize) -> Option<Self> {
        let data = payload.get(header_len..).filter(|data| !data.is_empty())?;
        Some(Self { session, link_type, data, original_len: None })
    }
}

/// Configuration of a [`MirrorSource`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MirrorConfig {
    /// Limits and stop handle. The source uses `batch_len`, `interface_count_max` and `source_bytes_max`.
    pub source: SourceConfig,
    /// Length of the kernel's receive buffer in octets. The default is 16 MiB; a process without `CAP_NET_ADMIN` gets at
    /// most `net.core.rmem_max`.
    pub buffer_len: usize,
}

impl Default for MirrorConfig {
    fn default() -> Self {
        Self { source: SourceConfig::default(), buffer_len: 16 << 20 }
    }
}

/// Frames of mirror sessions: the frames inside datagrams that this host receives, without their outer headers.
///
/// Each virtual network or mirror session is an [`Interface`] with a name such as `vxlan-42`. Frames have the time at
/// which the kernel received the datagram. A datagram without a frame is counted
/// ([`SourceStats::invalid_datagram_count`]), and so are the datagrams that the kernel dropped
/// ([`SourceStats::kernel_drop_count`]). The source never ends unless its stop handle is set.
///
/// ```no_run
/// use flowgauge::source::{MirrorConfig, MirrorEncapsulation, MirrorSource};
/// use flowgauge::{Pipeline, Records, RunOptions};
///
/// let config = MirrorConfig::default();
/// let mut source = MirrorSource::udp("127.0.0.1:4789", MirrorEncapsulation::Vxlan, config)?;
/// let mut pipeline = Pipeline::builder().build(Records::new(|record| println!("{record}")))?;
/// pipeline.run(&mut source, &RunOptions::default())?;
/// # Ok::<(), flowgauge::Error>(())
/// ```
#[derive(Debug)]
pub struct MirrorSource {
    socket: DatagramSocket,
    name: String,
    encapsulation: MirrorEncapsulation,
    sessions: Sessions,
    tally: Tally,
    batch_len: usize,
    stop: StopHandle,
}

impl MirrorSource {
    /// Receives frames at a UDP address.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Io`] if the address cannot be bound.
    pub fn udp(
        address: impl ToSocketAddrs,
        encapsulation: MirrorEncapsulation,
        config: MirrorConfig,
    ) -> Result<Self, Error> {
        let addresses = resolve("udp", address)?;
        let socket = DatagramSocket::bind(&*addresses, config.buffer_len)
            .map_err(|error| socket_error("udp", &addresses, error))?;
        let name = socket.local_addr().map(|address| format!("udp {address}")).unwrap_or_default();
        Ok(Self::new(socket, name, encapsulation, &config.source))
    }

    /// Receives GRE packets that are sent to a local address, directly over IP. Needs the capability `CAP_NET_RAW`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Permission`] if the process lacks the capability, and [`Error::Io`] if the address is not local.
    pub fn gre(address: IpAddr, config: MirrorConfig) -> Result<Self, Error> {
        let name = format!("gre {address}");
        let socket = DatagramSocket::raw(address, IpProtocol::GRE, config.buffer_len).map_err(|error| {
            if error.kind() == io::ErrorKind::PermissionDenied {
                Error::Permission { name: name.clone() }
            } else {
                Error::Io { path: PathBuf::from(&name), error }
            }
        })?;
        Ok(Self::new(socket, name, MirrorEncapsulation::Gre, &config.source))
    }

    fn new(
        socket: DatagramSocket,
        name: String,
        encapsulation: MirrorEncapsulation,
        config: &SourceConfig,
    ) -> Self {
        let memory = Memory::new(config);
        let interfaces = Interfaces::new(config.resources.limits.interface_count_max, &memory);
        let sessions = Sessions { interfaces, numbers: HashMap::new(), last: None, others: None };
        let batch_len = config.resources.limits.batch_len as usize;
        let stop = memory.stop().clone();
        Self { socket, name, encapsulation, sessions, tally: Tally::default(), batch_len, stop }
    }

    /// Returns the address to which the socket is bound.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

impl Source for MirrorSource {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        let mut wait = IDLE_INTERVAL;
        while batch.bytes().len() < self.batch_len {
            if self.stop.is_stopped() {
                return Ok(if batch.is_empty() { Next::End } else { Next::Frames });
            }
            let (sessions, tally) = (&mut self.sessions, &mut self.tally);
            let (encapsulation, name) = (self.encapsulation, &self.name);
            let received = self.socket.receive(wait, |datagram: &ReceivedDatagram<'_>| {
                let Some(frame) = encapsulation.frame(datagram.payload) else {
                    tally.stats.invalid_datagram_count += 1;
                    return;
                };
                let interface = match sessions.number(frame.session) {
                    Some(number) => number,
                    None => sessions.add(&frame, encapsulation, name, tally),
                };
                let captured_len = frame.data.len() as u32;
                let wire_len = frame.original_len.unwrap_or(0).max(captured_len);
                let Mirrored { link_type, data, .. } = frame;
                tally.timed_frame(datagram.timestamp, captured_len, wire_len);
                batch.push(&Frame { timestamp: datagram.timestamp, link_type, data, wire_len, interface });
            });
            let count = received.map_err(|error| Error::Io { path: PathBuf::from(&self.name), error })?;
            tally.stats.kernel_drop_count = self.socket.drop_count();
            if count < RECEIVE_COUNT {
                break;
            }
            wait = Duration::ZERO;
        }
        Ok(if batch.is_empty() { Next::Idle(now()) } else { Next::Frames })
    }

    fn warnings(&self) -> &[Warning] {
        &[]
    }

    fn stats(&self) -> SourceStats {
        self.tally.stats
    }

    fn interfaces(&self) -> &[Interface] {
        self.sessions.interfaces.as_slice()
    }

    /// Returns the number of octets of all frames so far.
    fn progress(&self) -> u64 {
        self.tally.stats.captured_octet_count
    }
}

/// The interfaces of mirror sessions by their identifiers.
#[derive(Debug)]
struct Sessions {
    interfaces: Interfaces,
    numbers: HashMap<Option<u32>, u32>,
    last: Option<(Option<u32>, u32)>,
    /// Index of the interface of all further sessions, once there are too many.
    others: Option<u32>,
}

impl Sessions {
    /// Returns the interface of a session; `None` if the session is new and can be added.
    #[inline]
    fn number(&mut self, session: Option<u32>) -> Option<u32> {
        match self.last {
            Some((last, number)) if last == session => Some(number),
            _ => {
                let number = self.numbers.get(&session).copied().or(self.others)?;
                self.last = Some((session, number));
                Some(number)
            }
        }
    }

    /// Adds the interface of a new session, and returns its index.
    fn add(
        &mut self,
        frame: &Mirrored<'_>,
        encapsulation: MirrorEncapsulation,
        description: &str,
        tally: &mut Tally,
    ) -> u32 {
        let name = match frame.session {
            Some(session) => format!("{encapsulation}-{session}"),
            None => encapsulation.name().to_owned(),
        };
        let interface = Interface {
            name: Some(name),
            description: Some(description.to_owned()),
            resolution: TimeResolution::NANOSECONDS,
            ..Interface::new(frame.link_type)
        };
        let hash = self.interfaces.hash(&interface);
        let number = self.interfaces.number(interface, hash, 0);
        if number.is_complete {
            self.numbers.insert(frame.session, number.number);
        } else {
            tally.stats.unnamed_interface_count += 1;
            self.others = Some(number.number);
        }
        number.number
    }
}
