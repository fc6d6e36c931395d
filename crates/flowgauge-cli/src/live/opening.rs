//! Opens the source of live frames: an interface, a mirror session, or a capture over TCP.

use std::net::SocketAddr;

use flowgauge::source::{self, MirrorConfig, MirrorSource, StreamConfig, StreamSource};
use flowgauge::{Resources, Source, SourceConfig};

use super::args::LiveArgs;
use super::origin::{Connection, Listener};
use crate::console::Failure;
use crate::endpoint::Endpoint;
use crate::interrupt;

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
