//! Formats of logs.

use std::io::Write;

use flowgauge::export::FlowLog;
use flowgauge::export::eve::{EveConfig, Events};
use flowgauge::export::zeek::{Logs, ZeekConfig};

/// A format of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Zeek,
    ZeekJson,
    Eve,
}

impl LogFormat {
    pub(crate) const ALL: [Self; 3] = [Self::Zeek, Self::ZeekJson, Self::Eve];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Zeek => "zeek",
            Self::ZeekJson => "zeek-json",
            Self::Eve => "eve",
        }
    }

    /// Returns the extension of the names of files.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Zeek | Self::ZeekJson => "log",
            Self::Eve => "json",
        }
    }

    /// Returns the log of records from other programs on a stream.
    pub(crate) fn stream(self, out: impl Write + Send + 'static) -> Box<dyn FlowLog + Send> {
        if self == Self::Eve {
            return Box::new(Events::stream(out, EveConfig::default().has_flows_only(true)));
        }
        let config = ZeekConfig::default().is_json(self == Self::ZeekJson).has_connections_only(true);
        Box::new(Logs::stream(out, config))
    }
}
