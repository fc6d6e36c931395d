//! Formats of logs.

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
}
