//! Names of topics.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};

use flowgauge::base::{FlowKey, IpProtocol, Side};
use flowgauge::tracker::Anomaly;

use crate::error::BusError;

/// Topic of a message: a name of at most 63 octets, whose parts are separated by dots.
///
/// A subscriber selects topics by a prefix, octet by octet. The prefix `flow.end` therefore selects `flow.end` and
/// `flow.end.tcp.443`, and the empty prefix selects all topics.
///
/// | topic | event |
/// |---|---|
/// | `flow.start` | the record of a flow that begins, before its first packet is counted |
/// | `flow.update` | the record of a flow at its active timeout |
/// | `flow.end` | the last record of a flow |
/// | `session.http` and so on | a message of the application protocol |
/// | `anomaly.syn_on_open_flow` and so on | unusual traffic of a flow |
///
/// ```
/// use flowgauge::base::FlowKey;
/// use flowgauge_bus::Topic;
///
/// let (key, client) = FlowKey::tcp("192.0.2.1:40000".parse()?, "198.51.100.7:443".parse()?);
/// assert_eq!(Topic::FLOW_END.with_key(&key, client).as_str(), "flow.end.tcp.443");
/// assert_eq!(Topic::new("session.http")?.as_str(), "session.http");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Topic {
    octets: [u8; Topic::LEN_MAX],
    len: u8,
}

impl Topic {
    /// Maximum length of a topic in octets.
    pub const LEN_MAX: usize = 63;

    /// A flow begins.
    pub const FLOW_START: Self = Self::from_static("flow.start");
    /// The active timeout of a flow has passed.
    pub const FLOW_UPDATE: Self = Self::from_static("flow.update");
    /// A flow ends.
    pub const FLOW_END: Self = Self::from_static("flow.end");

    const fn from_static(name: &str) -> Self {
        let source = name.as_bytes();
        let mut octets = [0; Self::LEN_MAX];
        let (target, _) = octets.split_at_mut(source.len());
        target.copy_from_slice(source);
        Self { octets, len: source.len() as u8 }
    }

    /// Creates a topic from a name.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Topic`] if the name is empty or longer than [`Topic::LEN_MAX`].
    pub fn new(name: &str) -> Result<Self, BusError> {
        if name.is_empty() || name.len() > Self::LEN_MAX {
            return Err(BusError::Topic { len: name.len() });
        }
        Ok(Self::from_static(name))
    }

    /// Returns the topic of the messages of an application protocol.
    #[must_use]
    pub fn session(protocol: &str) -> Self {
        let mut topic = Self::from_static("session");
        topic.append(protocol);
        topic
    }

    /// Returns the topic of an anomaly.
    #[must_use]
    pub fn anomaly(anomaly: Anomaly) -> Self {
        match anomaly {
            Anomaly::ResetOutOfWindow => const { Self::from_static("anomaly.reset_out_of_window") },
            Anomaly::SynOnOpenFlow => const { Self::from_static("anomaly.syn_on_open_flow") },
            Anomaly::IcmpError => const { Self::from_static("anomaly.icmp_error") },
            Anomaly::AckedUnseen => const { Self::from_static("anomaly.acked_unseen") },
            _ => const { Self::from_static("anomaly.other") },
        }
    }

    /// Returns the topic, followed by the IP protocol of a Flow Key and the port of the responder, if there is one.
    /// Parts from the first one that would exceed the maximum length are omitted.
    #[must_use]
    pub fn with_key(mut self, key: &FlowKey, initiator: Side) -> Self {
        let is_complete = match key.protocol() {
            IpProtocol::TCP => self.append("tcp"),
            IpProtocol::UDP => self.append("udp"),
            protocol => self.append(&protocol.to_string().to_ascii_lowercase()),
        };
        if is_complete && let Some(port) = key.port(initiator.other()) {
            // Decimal digits, without an allocation.
            let mut digits = [b'0'; 5];
            let mut rest = port;
            for digit in digits.iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            let digits = std::str::from_utf8(&digits).unwrap_or_default().trim_start_matches('0');
            self.append(if digits.is_empty() { "0" } else { digits });
        }
        self
    }

    /// Appends a dot and a part. Returns false if they do not fit.
    fn append(&mut self, part: &str) -> bool {
        let start = usize::from(self.len);
        let end = start + 1 + part.len();
        let Some((dot, rest)) = self.octets.get_mut(start..end).and_then(<[u8]>::split_first_mut) else {
            return false;
        };
        *dot = b'.';
        rest.copy_from_slice(part.as_bytes());
        self.len = end as u8;
        true
    }

    /// Returns the name of the topic.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Returns the octets of the name.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl Hash for Topic {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Borrow<[u8]> for Topic {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Topic").field(&self.as_str()).finish()
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_do_not_fit_are_omitted() {
        let name = "x".repeat(Topic::LEN_MAX - 3);
        let (key, side) = FlowKey::udp("192.0.2.1:5000".parse().unwrap(), "192.0.2.2:53".parse().unwrap());
        assert_eq!(Topic::new(&name).unwrap().with_key(&key, side).as_str(), name);
        assert!(Topic::new(&"x".repeat(Topic::LEN_MAX + 1)).is_err());
        assert!(Topic::new("").is_err());
        assert_eq!(Topic::FLOW_END.with_key(&key, side).as_str(), "flow.end.udp.53");
        let (key, side) =
            FlowKey::tcp("[2001:db8::1]:5000".parse().unwrap(), "[2001:db8::2]:0".parse().unwrap());
        assert_eq!(Topic::FLOW_END.with_key(&key, side).as_str(), "flow.end.tcp.0");
        assert_eq!(Topic::session("http").as_str(), "session.http");
    }
}
