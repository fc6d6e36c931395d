//! Length of an HTTP/1.x body (RFC 9112 section 6.3), and the fields that determine it or are keys of messages.

use super::content_range::ContentRange;
use super::credentials::{self, foremost};
use super::message::Anomaly;
use super::number::number;
use super::pending::Kind;
use crate::checkpoint::state;
use crate::session::{Role, Text};

/// How the end of an HTTP/1.x body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// The message has no body.
    Empty,
    /// The body ends after this many octets, at least one.
    Fixed(u64),
    /// The body ends with the last chunk of the chunked coding.
    Chunked,
    /// The body ends when the connection ends.
    UntilClose,
    /// The end of the body is unknown.
    Unknown,
}

state! { enum Framing { 0 = Empty, 1 = Fixed(left), 2 = Chunked, 3 = UntilClose, 4 = Unknown } }

/// Combined value of all Content-Length fields of a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Length {
    #[default]
    Unknown,
    Known {
        len: u64,
        is_repeated: bool,
    },
    /// A Content-Length is not a number, or there are several that differ.
    Bad,
}

/// The last transfer coding in the Transfer-Encoding fields of a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Coding {
    #[default]
    Unnamed,
    /// The coding `identity`, which RFC 2616 defines as the absence of a coding.
    Identity,
    Chunked,
    Other,
}

/// The header fields of a head that the HTTP/1.x parser reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Known<'m> {
    pub(super) host: Option<Text<'m>>,
    pub(super) user_agent: Option<Text<'m>>,
    pub(super) referer: Option<&'m [u8]>,
    pub(super) server: Option<Text<'m>>,
    pub(super) location: Option<&'m [u8]>,
    pub(super) content_type: Option<Text<'m>>,
    pub(super) content_encoding: Option<Text<'m>>,
    pub(super) content_range: ContentRange,
    pub(super) transfer_encoding: Option<Text<'m>>,
    pub(super) upgrade: Option<Text<'m>>,
    pub(super) credentials: Option<&'static str>,
    /// True if the client waits for a response before it sends the body (RFC 9110 section 10.1.1).
    pub(super) expects_continue: bool,
    length: Length,
    coding: Coding,
}

impl<'m> Known<'m> {
    pub(super) fn read(fields: &[httparse::Header<'m>]) -> Self {
        let mut known = Self::default();
        for field in fields {
            known.add(field.name, field.value);
        }
        known
    }

    fn add(&mut self, name: &'m str, value: &'m [u8]) {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        let text = Some(Text(value));
        match name.len() {
            4 if is("host") => self.host = self.host.or(text),
            6 if is("expect") => self.expects_continue |= value.eq_ignore_ascii_case(b"100-continue"),
            6 if is("server") => self.server = self.server.or(text),
            7 if is("referer") => self.referer = self.referer.or(Some(value)),
            7 if is("upgrade") => self.upgrade = self.upgrade.or(text),
            8 if is("location") => self.location = self.location.or(Some(value)),
            10 if is("user-agent") => self.user_agent = self.user_agent.or(text),
            12 if is("content-type") => self.content_type = self.content_type.or(text),
            13 if is("content-range") => self.content_range = ContentRange::parse(value),
            14 if is("content-length") => self.length = self.length.and(value),
            16 if is("content-encoding") => self.content_encoding = self.content_encoding.or(text),
            17 if is("transfer-encoding") => {
                self.transfer_encoding = text;
                self.coding = Coding::last_of(value);
            }
            _ => self.credentials = foremost(self.credentials, credentials::of_field(name.as_bytes(), value)),
        }
    }

    /// Returns the value of Content-Length in octets, if it is valid.
    pub(super) fn content_length(&self) -> Option<u64> {
        match self.length {
            Length::Known { len, .. } => Some(len),
            Length::Unknown | Length::Bad => None,
        }
    }

    /// Returns the anomaly of the header fields that determine the end of the body.
    pub(super) fn anomaly(&self, from: Role) -> Option<Anomaly> {
        match (self.coding, self.length) {
            (Coding::Chunked | Coding::Other, Length::Known { .. } | Length::Bad) => {
                Some(Anomaly::LengthAndCoding)
            }
            (_, Length::Bad) => Some(Anomaly::BadLength),
            (Coding::Other, _) if from == Role::Client => Some(Anomaly::BadCoding),
            (_, Length::Known { is_repeated: true, .. }) => Some(Anomaly::RepeatedLength),
            _ => None,
        }
    }

    /// Returns how the end of a request's body is determined.
    pub(super) fn of_request(&self) -> Framing {
        match self.coding {
            Coding::Chunked => Framing::Chunked,
            // A server rejects such a request (RFC 9112 section 6.3, items 4 and 5).
            Coding::Other => Framing::Unknown,
            Coding::Unnamed | Coding::Identity => self.by_length(Framing::Empty, Framing::Unknown),
        }
    }

    /// Returns how the end of a response's body is determined. `kind` is the kind of the request.
    pub(super) fn of_response(&self, kind: Kind, status: u16) -> Framing {
        if kind == Kind::Head || status < 200 || matches!(status, 204 | 304) {
            return Framing::Empty;
        }
        match self.coding {
            Coding::Chunked => Framing::Chunked,
            Coding::Other => Framing::UntilClose,
            // Browsers ignore an invalid length.
            Coding::Unnamed | Coding::Identity => self.by_length(Framing::UntilClose, Framing::UntilClose),
        }
    }

    fn by_length(&self, without: Framing, bad: Framing) -> Framing {
        match self.length {
            Length::Known { len: 0, .. } => Framing::Empty,
            Length::Known { len, .. } => Framing::Fixed(len),
            Length::Unknown => without,
            Length::Bad => bad,
        }
    }
}

impl Length {
    /// Combines the value of the Content-Length fields so far with that of one more field, which may be a list of equal
    /// numbers.
    fn and(self, value: &[u8]) -> Self {
        value.split(|octet| *octet == b',').fold(self, |known, item| {
            match (known, number(item.trim_ascii())) {
                (Self::Unknown, Some(len)) => Self::Known { len, is_repeated: false },
                (Self::Known { len, .. }, Some(again)) if len == again => {
                    Self::Known { len, is_repeated: true }
                }
                _ => Self::Bad,
            }
        })
    }
}

impl Coding {
    fn last_of(value: &[u8]) -> Self {
        let last = value.rsplit(|octet| *octet == b',').next().unwrap_or_default().trim_ascii();
        if last.eq_ignore_ascii_case(b"chunked") {
            Self::Chunked
        } else if last.eq_ignore_ascii_case(b"identity") {
            Self::Identity
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::number::LEN_MAX;
    use super::*;

    fn known(fields: &[(&'static str, &'static str)]) -> Known<'static> {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| httparse::Header { name, value: value.as_bytes() }).collect();
        Known::read(&fields)
    }

    #[test]
    fn equal_lengths_count_once_and_conflicting_lengths_are_rejected() {
        let of = |values: &[&'static str]| {
            let fields: Vec<_> = values.iter().map(|value| ("Content-Length", *value)).collect();
            known(&fields)
        };
        assert_eq!(of(&["42"]).of_request(), Framing::Fixed(42));
        assert_eq!(of(&["42"]).anomaly(Role::Client), None);
        assert_eq!(of(&["42, 42"]).of_response(Kind::Plain, 200), Framing::Fixed(42));
        assert_eq!(of(&["42", "42"]).anomaly(Role::Client), Some(Anomaly::RepeatedLength));
        assert_eq!(of(&["0"]).of_response(Kind::Plain, 200), Framing::Empty);
        for values in [
            &["42", "43"][..],
            &["42,43"],
            &["-1"],
            &["+1"],
            &[""],
            &["0x1"],
            &["9223372036854775808"],
            &["18446744073709551615"],
            &["18446744073709551616"],
        ] {
            assert_eq!(of(values).of_request(), Framing::Unknown, "{values:?}");
            assert_eq!(of(values).of_response(Kind::Plain, 200), Framing::UntilClose, "{values:?}");
            assert_eq!(of(values).anomaly(Role::Client), Some(Anomaly::BadLength), "{values:?}");
        }
        assert_eq!(of(&["9223372036854775807"]).of_request(), Framing::Fixed(LEN_MAX));
        assert_eq!(of(&["0000000000000000000000042"]).of_request(), Framing::Fixed(42));
    }

    #[test]
    fn transfer_codings_take_precedence_over_lengths() {
        let both = known(&[("content-length", "5"), ("transfer-encoding", "gzip, Chunked")]);
        assert_eq!(
            (both.of_request(), both.anomaly(Role::Client)),
            (Framing::Chunked, Some(Anomaly::LengthAndCoding))
        );
        let other = known(&[("Transfer-Encoding", "chunked, gzip")]);
        assert_eq!(
            (other.of_request(), other.anomaly(Role::Client)),
            (Framing::Unknown, Some(Anomaly::BadCoding))
        );
        assert_eq!(
            (other.of_response(Kind::Plain, 200), other.anomaly(Role::Server)),
            (Framing::UntilClose, None)
        );
        let identity = known(&[("Transfer-Encoding", "identity"), ("Content-Length", "5")]);
        assert_eq!(identity.of_response(Kind::Plain, 200), Framing::Fixed(5));
    }

    #[test]
    fn some_responses_have_no_body_regardless_of_their_fields() {
        let known = known(&[("Content-Length", "5")]);
        for (kind, status) in [(Kind::Head, 200), (Kind::Plain, 100), (Kind::Plain, 204), (Kind::Plain, 304)]
        {
            assert_eq!(known.of_response(kind, status), Framing::Empty);
        }
        assert_eq!(Known::default().of_response(Kind::Plain, 200), Framing::UntilClose);
        assert_eq!(Known::default().of_request(), Framing::Empty);
    }
}
