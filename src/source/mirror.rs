//! Frames that a switch or a host mirrors to this host, encapsulated in datagrams.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::clock::{IDLE_INTERVAL, now};
use super::config::SourceConfig;
use super::datagram::{DatagramSocket, RECEIVE_COUNT, ReceivedDatagram};
use super::error::{Error, resolve, socket_error};
use super::interfaces::Interfaces;
use super::memory::Memory;
use super::stats::{SourceStats, Tally};
use super::warning::Warning;
use super::{End, Interface, Next, Source, TimeResolution};
use crate::base::{EtherType, Frame, FrameBatch, IpProtocol, LinkType, StopHandle, Timestamp};
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

    /// Returns the frame in a payload: of a UDP datagram, or for [`Gre`](Self::Gre) also of an IP packet. `None` if there is
    /// none. Borrows from the payload and does not allocate.
    ///
    /// [`MirrorSource`] does this for the datagrams of its socket; this function is for payloads that were received in
    /// another way.
    ///
    /// ```
    /// use flowgauge::LinkType;
    /// use flowgauge::source::MirrorEncapsulation;
    ///
    /// // RFC 7348 section 5: flags, VNI 42, then the frame.
    /// let payload = [8, 0, 0, 0, 0, 0, 42, 0, 0xff, 0xff];
    /// let frame = MirrorEncapsulation::Vxlan.frame(&payload).unwrap();
    /// assert_eq!((frame.session, frame.link_type), (Some(42), LinkType::ETHERNET));
    /// assert_eq!(frame.data, [0xff, 0xff]);
    /// assert_eq!(MirrorEncapsulation::Vxlan.frame(&payload[..8]), None);
    /// ```
    #[must_use]
    pub fn frame(self, payload: &[u8]) -> Option<MirroredFrame<'_>> {
        match self {
            Self::Vxlan => {
                let vni = vxlan::vni(payload)?;
                MirroredFrame::new(Some(vni), LinkType::ETHERNET, payload, vxlan::HEADER_LEN)
            }
            Self::VxlanGpe => {
                let (vni, protocol) = vxlan::gpe(payload)?;
                MirroredFrame::of_ether_type(Some(vni), protocol, payload, vxlan::HEADER_LEN)
            }
            Self::Geneve => {
                let header = geneve::header(payload).filter(|header| !header.is_control)?;
                MirroredFrame::of_ether_type(Some(header.vni), header.protocol, payload, header.len)
            }
            Self::Tzsp => {
                let header = tzsp::header(payload)?;
                let mut frame = MirroredFrame::new(None, header.link_type, payload, header.len)?;
                frame.original_len = header.original_len.map(u32::from);
                Some(frame)
            }
            Self::Gre => of_gre(payload),
        }
    }
}

/// Returns the frame behind a GRE header.
fn of_gre(payload: &[u8]) -> Option<MirroredFrame<'_>> {
    let header = gre::header(payload).filter(|header| header.version == 0)?;
    let session = |id: u16| Some(u32::from(id));
    let rest = payload.get(header.len..)?;
    let erspan = match header.protocol {
        // Only type I has no sequence number, and no header of its own.
        gre::ERSPAN_II if !header.has_sequence => {
            return MirroredFrame::new(None, LinkType::ETHERNET, rest, 0);
        }
        gre::ERSPAN_II => erspan::type_2(rest)?,
        gre::ERSPAN_III => erspan::type_3(rest)?,
        gre::PPP => return MirroredFrame::new(header.key, LinkType::PPP, rest, 0),
        protocol => {
            let key = header.virtual_subnet().or(header.key);
            return MirroredFrame::of_ether_type(key, protocol, rest, 0);
        }
    };
    let link_type = if erspan.is_ip { LinkType::RAW } else { LinkType::ETHERNET };
    MirroredFrame::new(session(erspan.session_id), link_type, rest, erspan.len)
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

/// A frame in the payload of a mirror session; see [`MirrorEncapsulation::frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MirroredFrame<'a> {
    /// Identifier of the virtual network (VNI) or of the mirror session (ERSPAN session ID, GRE key), if the encapsulation
    /// has one.
    pub session: Option<u32>,
    /// Link type of the frame.
    pub link_type: LinkType,
    /// Octets of the frame, at least one.
    pub data: &'a [u8],
    /// Length of the frame in octets before the sender truncated it, if the encapsulation states it.
    pub original_len: Option<u32>,
}

impl<'a> MirroredFrame<'a> {
    /// Creates the frame behind a header of `header_len` octets; `None` if nothing follows.
    fn new(session: Option<u32>, link_type: LinkType, payload: &'a [u8], header_len: usize) -> Option<Self> {
        let data = payload.get(header_len..).filter(|data| !data.is_empty())?;
        Some(Self { session, link_type, data, original_len: None })
    }

    /// Creates the frame behind a header that ends with an EtherType; `None` if it is none that carries a frame, or if an
    /// IP packet has the other version.
    fn of_ether_type(
        session: Option<u32>,
        protocol: EtherType,
        payload: &'a [u8],
        header_len: usize,
    ) -> Option<Self> {
        let (link_type, version) = match protocol {
            EtherType::ETHERNET_BRIDGING => (LinkType::ETHERNET, None),
            EtherType::IPV4 => (LinkType::RAW, Some(4)),
            EtherType::IPV6 => (LinkType::RAW, Some(6)),
            _ => return None,
        };
        let is_of_version = |first: &u8| version.is_none_or(|version| first >> 4 == version);
        Self::new(session, link_type, payload, header_len)
            .filter(|frame| frame.data.first().is_some_and(is_of_version))
    }
}

crate::base::configuration! {
    /// Configuration of a [`MirrorSource`].
    #[derive(Clone, Debug)]
    pub struct MirrorConfig {
        /// Limits and stop handle. The source uses `batch_len`, `interface_count_max` and `source_bytes_max`.
        pub source: SourceConfig,
        /// Length of the kernel's receive buffer in octets. The default is 16 MiB; a process without `CAP_NET_ADMIN` gets at
        /// most `net.core.rmem_max`.
        pub buffer_len: usize,
    }
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
    state: MirrorState,
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
                Error::Io { path: PathBuf::from(&name), error: error.into() }
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
        let batch_len = config.resources.limits.batch_len as usize;
        let state = MirrorState::new(name, encapsulation, config);
        Self { socket, state, batch_len, stop: config.stop.clone().unwrap_or_default() }
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
                return Ok(if batch.is_empty() { Next::End(End::Stopped) } else { Next::Frames });
            }
            let state = &mut self.state;
            let received = self.socket.receive(wait, |datagram: &ReceivedDatagram<'_>| {
                state.datagram(datagram.payload, datagram.timestamp, batch);
            });
            let count = received
                .map_err(|error| Error::Io { path: PathBuf::from(&state.name), error: error.into() })?;
            state.tally.stats.kernel_drop_count = self.socket.drop_count();
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
        self.state.stats()
    }

    fn interfaces(&self) -> &[Interface] {
        self.state.interfaces()
    }

    /// Returns the number of octets of all frames so far.
    fn progress(&self) -> u64 {
        self.state.tally.stats.captured_octet_count
    }
}

/// The part of a [`MirrorSource`] that reads datagrams, without a socket.
#[derive(Debug)]
pub struct MirrorState {
    name: String,
    encapsulation: MirrorEncapsulation,
    sessions: Sessions,
    tally: Tally,
}

impl MirrorState {
    /// `name` describes the socket.
    #[must_use]
    pub fn new(name: String, encapsulation: MirrorEncapsulation, config: &SourceConfig) -> Self {
        let interfaces = Interfaces::new(config.resources.limits.interface_count_max, &Memory::new(config));
        let sessions = Sessions { interfaces, numbers: HashMap::new(), last: None, others: None };
        Self { name, encapsulation, sessions, tally: Tally::default() }
    }

    /// Appends the frame in a datagram to a batch, or counts the datagram as invalid.
    #[inline]
    pub fn datagram(&mut self, payload: &[u8], timestamp: Timestamp, batch: &mut FrameBatch) {
        let Some(frame) = self.encapsulation.frame(payload) else {
            self.tally.stats.invalid_datagram_count += 1;
            return;
        };
        let interface = match self.sessions.number(frame.session) {
            Some(number) => number,
            None => self.sessions.add(&frame, self.encapsulation, &self.name, &mut self.tally),
        };
        let captured_len = frame.data.len() as u32;
        let wire_len = frame.original_len.unwrap_or(captured_len);
        let MirroredFrame { link_type, data, .. } = frame;
        self.tally.timed_frame(timestamp, captured_len, wire_len);
        batch.push(&Frame { timestamp, link_type, data, wire_len, interface });
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> SourceStats {
        self.tally.stats
    }

    /// Returns the interfaces of the sessions so far.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        self.sessions.interfaces.as_slice()
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
        frame: &MirroredFrame<'_>,
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
