//! SDP: what media a session has, and where they are received.
//!
//! Standards: RFC 8866.

use super::rtp::PayloadType;
use crate::row::{Group, List};
use crate::session::Text;
use crate::session::kit::KeptList;

/// Number of media descriptions of which columns and events are made.
const MEDIA_MAX: usize = 16;

/// Number of lines of a kind in an event.
const LINES_MAX: usize = 64;

/// A description of a session.
#[derive(Clone, Copy)]
pub(super) struct Sdp<'a>(pub(super) &'a [u8]);

/// A part of a description: what is said of the session, or of a medium.
#[derive(Clone, Copy)]
struct Part<'a>(&'a [u8]);

impl<'a> Sdp<'a> {
    /// Returns what is said of the session.
    fn session(self) -> Part<'a> {
        Part(self.0.get(..next_medium(self.0, 0)).unwrap_or_default())
    }

    /// Returns what is said of each medium.
    fn media(self) -> impl Iterator<Item = Part<'a>> + Clone {
        let mut at = next_medium(self.0, 0);
        std::iter::from_fn(move || {
            let part = self.0.get(at..).filter(|rest| !rest.is_empty())?;
            let end = next_medium(part, 2);
            at += end;
            part.get(..end).map(Part)
        })
        .take(MEDIA_MAX)
    }

    /// Returns a text for each medium: its kind, the address and the port that receive it, the transport and the codecs. Takes time
    /// linear in the octets, up to [`MEDIA_MAX`] times for codecs.
    pub(super) fn summary<const N: usize>(self) -> KeptList<N> {
        let of_session = self.session().value(b'c');
        let mut list = KeptList::default();
        for medium in self.media() {
            let mut words = words(medium.value(b'm').unwrap_or_default());
            let [kind, port, transport] = [(); 3].map(|()| words.next().unwrap_or_default());
            let connection = medium.value(b'c').or(of_session).unwrap_or_default();
            // The address may have a time to live.
            let address = connection.split(|octet| *octet == b' ').nth(2).unwrap_or_default();
            let address = text(address.split(|octet| *octet == b'/').next().unwrap_or_default());
            let address = if address.contains(':') { format!("[{address}]") } else { address };
            let codecs: Vec<_> = words.take(8).map(|format| medium.codec(format)).collect();
            list.push(&format!(
                "{} {address}:{} {} {}",
                text(kind),
                text(port),
                text(transport),
                codecs.join(",")
            ));
        }
        list
    }
}

/// Returns the place of the first medium from a place on, or the end.
fn next_medium(octets: &[u8], from: usize) -> usize {
    let is_medium = |at: usize| octets.get(at..).is_some_and(|rest| rest.starts_with(b"m="));
    if from == 0 && is_medium(0) {
        return 0;
    }
    let rest = octets.get(from..).unwrap_or_default();
    let ends = memchr::memchr_iter(b'\n', rest).map(|end| from + end + 1);
    ends.into_iter().find(|at| is_medium(*at)).unwrap_or(octets.len())
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|octet| *octet == b' ').filter(|word| !word.is_empty())
}

fn text(octets: &[u8]) -> String {
    Text(octets).to_str_lossy().into_owned()
}

impl<'a> Part<'a> {
    /// Returns the values of the lines of a type.
    fn values(self, kind: u8) -> impl Iterator<Item = &'a [u8]> + Clone {
        let lines = self.0.split(|octet| *octet == b'\n');
        lines.filter_map(move |line| match line {
            [first, b'=', value @ ..] if *first == kind => Some(value.trim_ascii_end()),
            _ => None,
        })
    }

    fn value(self, kind: u8) -> Option<&'a [u8]> {
        self.values(kind).next()
    }

    fn text(self, kind: u8) -> Option<Text<'a>> {
        self.value(kind).map(Text)
    }

    /// Returns the lines of a type, without those that have keys (RFC 4568, RFC 4567).
    fn texts(self, kind: u8) -> Option<List<Vec<Text<'a>>>> {
        let has_key = |line: &&[u8]| line.starts_with(b"crypto:") || line.starts_with(b"key-mgmt:");
        let texts: Vec<_> =
            self.values(kind).filter(|line| !has_key(line)).take(LINES_MAX).map(Text).collect();
        (!texts.is_empty()).then_some(List(texts))
    }

    /// Returns the name of a format of the medium.
    fn codec(self, format: &[u8]) -> String {
        let mapped = self.values(b'a').find_map(|attribute| {
            let (number, name) = split_once(attribute.strip_prefix(b"rtpmap:")?, b' ')?;
            (number == format).then(|| name.split(|octet| *octet == b'/').next().unwrap_or_default())
        });
        let number = || std::str::from_utf8(format).ok()?.parse().ok();
        match mapped {
            Some(name) => text(name),
            None => number()
                .and_then(|number| PayloadType(number).name())
                .map_or_else(|| text(format), String::from),
        }
    }
}

fn split_once(octets: &[u8], by: u8) -> Option<(&[u8], &[u8])> {
    let at = octets.iter().position(|octet| *octet == by)?;
    Some((octets.get(..at)?, octets.get(at + 1..)?))
}

/// A time at which a session takes place.
#[derive(Clone)]
struct Time<'a>([Option<Text<'a>>; 2]);

/// A medium, as in events of EVE.
#[derive(Clone)]
struct Medium<'a>(Part<'a>);

impl<'a> Sdp<'a> {
    fn times(self) -> Option<List<Vec<Group<Time<'a>>>>> {
        let mut times: Vec<Group<Time<'a>>> = Vec::new();
        for line in self.session().0.split(|octet| *octet == b'\n') {
            match line {
                [b't', b'=', value @ ..] if times.len() < LINES_MAX => {
                    times.push(Group(Time([Some(Text(value.trim_ascii_end())), None])));
                }
                [b'r', b'=', value @ ..] => {
                    if let Some(Group(Time([_, repeat]))) = times.last_mut() {
                        *repeat = Some(Text(value.trim_ascii_end()));
                    }
                }
                _ => {}
            }
        }
        (!times.is_empty()).then_some(List(times))
    }

    fn eve_media(self) -> Option<List<Vec<Group<Medium<'a>>>>> {
        let media: Vec<_> = self.media().map(|part| Group(Medium(part))).collect();
        (!media.is_empty()).then_some(List(media))
    }
}

crate::table! {
    /// A description of a session.
    impl['a] "eve.sip.sip.sdp" for Sdp<'a> as sdp {
        /// `v=`.
        "version": Option<u64> = sdp.session().value(b'v').and_then(|version| std::str::from_utf8(version).ok()?.parse().ok());
        /// `o=`.
        "origin": Option<Text<'a>> = sdp.session().text(b'o');
        /// `s=`.
        "session_name": Option<Text<'a>> = sdp.session().text(b's');
        /// `i=`.
        "session_info": Option<Text<'a>> = sdp.session().text(b'i');
        /// `u=`.
        "uri": Option<Text<'a>> = sdp.session().text(b'u');
        /// `e=`.
        "email": Option<Text<'a>> = sdp.session().text(b'e');
        /// `p=`.
        "phone_number": Option<Text<'a>> = sdp.session().text(b'p');
        /// `c=`.
        "connection_data": Option<Text<'a>> = sdp.session().text(b'c');
        /// `b=`.
        "bandwidths": Option<List<Vec<Text<'a>>>> = sdp.session().texts(b'b');
        /// `t=` and `r=`.
        "time_descriptions": Option<List<Vec<Group<Time<'a>>>>> = sdp.times();
        /// `z=`.
        "timezone": Option<Text<'a>> = sdp.session().text(b'z');
        /// `k=` if it states no key.
        "encryption_key": Option<Text<'a>> = sdp.session().text(b'k').filter(is_no_key);
        /// `a=`, without keys.
        "attributes": Option<List<Vec<Text<'a>>>> = sdp.session().texts(b'a');
        /// `m=` and what follows each.
        "media_descriptions": Option<List<Vec<Group<Medium<'a>>>>> = sdp.eve_media();
    }
}

/// Returns whether a line on a key states none.
fn is_no_key(text: &Text<'_>) -> bool {
    text.0 == b"prompt"
}

crate::table! {
    /// A time at which a session takes place.
    impl['a] "eve.sip.sip.sdp.time" for Time<'a> as time {
        /// Begin and end, in seconds since 1900.
        "time": Option<Text<'a>> = time.0[0];
        /// When it is repeated.
        "repeat_time": Option<Text<'a>> = time.0[1];
    }
}

crate::table! {
    /// A medium.
    impl['a] "eve.sip.sip.sdp.media" for Medium<'a> as medium {
        /// `m=`.
        "media": Option<Text<'a>> = medium.0.text(b'm');
        /// `i=`.
        "media_info": Option<Text<'a>> = medium.0.text(b'i');
        /// `b=`.
        "bandwidths": Option<List<Vec<Text<'a>>>> = medium.0.texts(b'b');
        /// `c=`.
        "connection_data": Option<Text<'a>> = medium.0.text(b'c');
        /// `k=` if it states no key.
        "encryption_key": Option<Text<'a>> = medium.0.text(b'k').filter(is_no_key);
        /// `a=`, without keys.
        "attributes": Option<List<Vec<Text<'a>>>> = medium.0.texts(b'a');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_have_addresses_and_codecs() {
        let description = b"v=0\r\no=a 1 2 IN IP4 10.0.0.1\r\ns=-\r\nc=IN IP4 10.0.0.1/127\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0 97 98\r\n\
            a=rtpmap:97 iLBC/8000\r\nm=video 4002 RTP/AVP 31\r\nc=IN IP6 2001:db8::1\r\n";
        let media: KeptList<512> = Sdp(description).summary();
        let media: Vec<_> = media.iter().map(|medium| medium.to_string()).collect();
        assert_eq!(
            media,
            ["audio 10.0.0.1:4000 RTP/AVP PCMU,iLBC,98", "video [2001:db8::1]:4002 RTP/AVP H261"]
        );
        assert!(Sdp(b"").summary::<64>().is_empty());
        let keys =
            Part(b"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:secret\r\na=sendrecv\r\n").texts(b'a').unwrap();
        assert_eq!(keys.0, [Text(b"sendrecv")]);
    }
}
