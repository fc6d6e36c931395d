//! The application protocol of a flow, by name.

/// On what grounds a protocol was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Evidence {
    /// The octets look like it.
    Content,
    /// The port is its own, and no octets were seen that contradict.
    Port,
}

impl Evidence {
    /// `content` or `port`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Port => "port",
        }
    }
}

/// What is spoken in a flow, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Application {
    /// The protocol in lower case, as `http`.
    pub name: &'static str,
    /// On what grounds.
    pub evidence: Evidence,
}
