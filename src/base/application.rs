//! The application protocol of a flow, by name.

use std::fmt;

/// The evidence by which an application protocol was identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Evidence {
    /// The payload matches the application protocol.
    Content,
    /// The port is registered for the application protocol, and no payload contradicts it.
    Port,
}

impl Evidence {
    /// Returns the evidence whose [`name`](Self::name) is `name`.
    #[must_use]
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Content, Self::Port].into_iter().find(|evidence| evidence.name() == name)
    }

    /// Returns the name of the evidence: `content` or `port`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Port => "port",
        }
    }
}

/// The application protocol of a flow, and the evidence for it. `Copy`, without heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Application {
    /// Name of the application protocol in lower case, such as `http`.
    pub name: ApplicationName,
    /// The evidence for the application protocol.
    pub evidence: Evidence,
}

impl fmt::Display for Application {
    /// Writes the name, with a question mark if the port is the only evidence: `http`, `http?`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.evidence == Evidence::Port { "?" } else { "" };
        write!(f, "{}{mark}", self.name)
    }
}

/// The name of an application protocol: at most 23 lower-case letters, digits, `_`, `-`, `.` and `/`, stored inline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationName {
    octets: [u8; Self::LEN_MAX],
    len: u8,
}

impl ApplicationName {
    /// Maximum length of the name of an application protocol, in octets.
    pub const LEN_MAX: usize = 23;

    /// Creates the name of an application protocol from text. Returns `None` if the text is empty, longer than
    /// [`LEN_MAX`](Self::LEN_MAX), or contains a character that is not allowed.
    #[must_use]
    pub const fn new(name: &str) -> Option<Self> {
        let letters = name.as_bytes();
        if letters.is_empty() || letters.len() > Self::LEN_MAX {
            return None;
        }
        let mut octets = [0; Self::LEN_MAX];
        let mut index = 0;
        while index < letters.len() {
            if !matches!(letters[index], b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'/') {
                return None;
            }
            octets[index] = letters[index];
            index += 1;
        }
        Some(Self { octets, len: letters.len() as u8 })
    }

    /// Returns the name of the application protocol as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let octets = self.octets.get(..usize::from(self.len)).unwrap_or_default();
        std::str::from_utf8(octets).unwrap_or_default()
    }
}

impl fmt::Display for ApplicationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for ApplicationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// As text.
#[cfg(feature = "serde")]
impl serde::Serialize for ApplicationName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for ApplicationName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::new(&name).ok_or_else(|| serde::de::Error::custom("not the name of an application protocol"))
    }
}

impl PartialEq<str> for ApplicationName {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for ApplicationName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_must_be_lower_case_and_short() {
        let name = ApplicationName::new("bacnet/ip").unwrap();
        assert_eq!(
            (name.as_str(), name.to_string(), name == "bacnet/ip"),
            ("bacnet/ip", name.to_string(), true)
        );
        assert_eq!(ApplicationName::new("a23456789_123456789_123").unwrap().as_str().len(), 23);
        for wrong in ["", "a23456789_123456789_1234", "Http", "a b", "a\"b", "é"] {
            assert_eq!(ApplicationName::new(wrong), None, "{wrong}");
        }
    }
}
