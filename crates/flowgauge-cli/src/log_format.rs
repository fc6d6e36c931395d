//! Formats of logs.

use std::io::Write;

use flowgauge::export::FlowLog;
use flowgauge::export::zeek::{Logs, ZeekConfig};

/// A format of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Zeek,
    ZeekJson,
}

impl LogFormat {
    pub(crate) const ALL: [Self; 2] = [Self::Zeek, Self::ZeekJson];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Zeek => "zeek",
            Self::ZeekJson => "zeek-json",
        }
    }

    /// Returns the log of records from other programs on a stream.
    pub(crate) fn stream(self, out: impl Write + Send + 'static) -> Box<dyn FlowLog + Send> {
        let config = ZeekConfig::default().is_json(self == Self::ZeekJson).has_connections_only(true);
        Box::new(Logs::stream(out, config))
    }
}
