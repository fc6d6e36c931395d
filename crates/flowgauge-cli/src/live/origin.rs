//! Origins of live frames: interfaces, mirror sessions, and captures over TCP.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use flowgauge::source::{self, MirrorConfig, MirrorEncapsulation, MirrorSource, StreamConfig, StreamSource};
use flowgauge::{Resources, Source, SourceConfig};

use super::args::LiveArgs;
use crate::console::Failure;
use crate::endpoint::Endpoint;
use crate::interrupt;

/// Address at which frames are received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Listener {
    Udp(Endpoint, MirrorEncapsulation),
    Gre(IpAddr),
    Pcap(Endpoint),
}

impl FromStr for Listener {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, content) = split(text)?;
        if let Some(address) = address.strip_prefix("ip://") {
            let address = address.trim_start_matches('[').trim_end_matches(']');
            let address = address.parse().map_err(|_| format!("`{address}` is not an IP address"))?;
            return match content {
                "gre" => Ok(Self::Gre(address)),
                _ => Err(format!("`{content}` is not received directly over IP; use gre")),
            };
        }
        match address.parse()? {
            endpoint @ Endpoint::Udp(_) => Ok(Self::Udp(endpoint, content.parse()?)),
            endpoint @ Endpoint::Tcp(_) => only_pcap(content).map(|()| Self::Pcap(endpoint)),
        }
    }
}

/// Address to which the command connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Connection(Endpoint);

impl FromStr for Connection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, content) = split(text)?;
        match address.parse()? {
            Endpoint::Udp(_) => Err("must begin with tcp://, such as tcp://192.0.2.1:57012/pcap".to_owned()),
            endpoint @ Endpoint::Tcp(_) => only_pcap(content).map(|()| Self(endpoint)),
        }
    }
}

/// Splits an address with a scheme from the content that follows the last slash.
fn split(text: &str) -> Result<(&str, &str), String> {
    let after_scheme = text.find("://").map_or(0, |at| at + 3);
    match text[after_scheme..].rfind('/') {
        Some(at) => Ok((&text[..after_scheme + at], &text[after_scheme + at + 1..])),
        None => Err("must state the content behind the address, such as udp://127.0.0.1:4789/vxlan or \
                     tcp://127.0.0.1:57012/pcap"
            .to_owned()),
    }
}

fn only_pcap(content: &str) -> Result<(), String> {
    if content == "pcap" { Ok(()) } else { Err(format!("`{content}` is not received over TCP; use pcap")) }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(endpoint, encapsulation) => write!(f, "{endpoint}/{encapsulation}"),
            Self::Gre(address) if address.is_ipv6() => write!(f, "ip://[{address}]/gre"),
            Self::Gre(address) => write!(f, "ip://{address}/gre"),
            Self::Pcap(endpoint) => write!(f, "{endpoint}/pcap"),
        }
    }
}

impl LiveArgs {
    /// Returns the name of the origin of the frames.
    pub(super) fn origin(&self) -> String {
        match (&self.interface, &self.listen, &self.connect) {
            (Some(interface), ..) => interface.clone(),
            (_, Some(listener), _) => listener.to_string(),
            (.., Some(Connection(endpoint))) => format!("{endpoint}/pcap"),
            (None, None, None) => String::new(),
        }
    }

    /// Opens the source of the frames.
    pub(super) fn open(&self, resources: &Resources) -> Result<Box<dyn Source>, Failure> {
        if let Some(name) = &self.interface {
            return self.open_interface(name);
        }
        let mut source = SourceConfig::from(resources.clone());
        source.stop = Some(interrupt::stop());
        if let Some(Connection(endpoint)) = &self.connect {
            return boxed(StreamSource::connect(&*resolve(endpoint)?, stream_config(source)));
        }
        match &self.listen {
            Some(Listener::Pcap(endpoint)) => {
                boxed(StreamSource::listen(&*resolve(endpoint)?, stream_config(source)))
            }
            Some(Listener::Udp(endpoint, encapsulation)) => {
                boxed(MirrorSource::udp(&*resolve(endpoint)?, *encapsulation, self.mirror_config(source)))
            }
            Some(Listener::Gre(address)) => boxed(MirrorSource::gre(*address, self.mirror_config(source))),
            None => Err(Failure::Usage("one of --interface, --listen and --connect is required".to_owned())),
        }
    }

    fn mirror_config(&self, source: SourceConfig) -> MirrorConfig {
        let mut config = MirrorConfig::default();
        config.source = source;
        if let Some(buffer) = self.buffer {
            config.buffer_len = usize::try_from(buffer).unwrap_or(usize::MAX);
        }
        config
    }

    #[cfg(feature = "live")]
    fn open_interface(&self, name: &str) -> Result<Box<dyn Source>, Failure> {
        use flowgauge::{LiveConfig, LiveSource};
        let mut config = LiveConfig::default();
        config.promiscuous = !self.no_promiscuous;
        config.immediate = self.immediate;
        config.snap_len = self.snap_length.unwrap_or(config.snap_len);
        if let Some(buffer) = self.buffer {
            config.buffer_len = u32::try_from(buffer).unwrap_or(u32::MAX);
        }
        config.capture_filter.clone_from(&self.capture_filter);
        config.stop = Some(interrupt::stop());
        boxed(LiveSource::open(name, config))
    }

    #[cfg(not(feature = "live"))]
    fn open_interface(&self, _: &str) -> Result<Box<dyn Source>, Failure> {
        let Self { capture_filter: _, snap_length: _, no_promiscuous: _, immediate: _, .. } = self;
        Err(crate::interfaces::no_support())
    }
}

fn stream_config(source: SourceConfig) -> StreamConfig {
    let mut config = StreamConfig::default();
    config.source = source;
    config
}

fn resolve(endpoint: &Endpoint) -> Result<Vec<SocketAddr>, Failure> {
    endpoint.resolve().map_err(|error| Failure::Other(format!("{endpoint}: {error}")))
}

/// Converts the result of opening a source, and states how to grant a missing permission.
fn boxed<S: Source + 'static>(opened: Result<S, source::Error>) -> Result<Box<dyn Source>, Failure> {
    match opened {
        Ok(source) => Ok(Box::new(source)),
        Err(error @ source::Error::Permission { .. }) => {
            let program = std::env::current_exe().unwrap_or_else(|_| "flowgauge".into());
            let program = program.display();
            Err(Failure::Other(format!(
                "{error}; run the command as root, or grant the capability once: \
                 sudo setcap cap_net_raw,cap_net_admin+eip {program}"
            )))
        }
        Err(error) => Err(Failure::Other(error.to_string())),
    }
}
