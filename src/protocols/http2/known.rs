//! The HTTP/2 header fields that are separate keys of messages.

use super::fields::Fields;
use crate::protocols::http1::content_range::ContentRange;
use crate::protocols::http1::credentials::foremost;
use crate::session::Text;

/// Values of the known fields of a header block.
#[derive(Clone, Debug, Default)]
pub(super) struct Known<'m> {
    pub(super) method: Option<Text<'m>>,
    pub(super) scheme: Option<Text<'m>>,
    pub(super) authority: Option<&'m [u8]>,
    pub(super) path: Option<Text<'m>>,
    pub(super) protocol: Option<Text<'m>>,
    pub(super) status: Option<u16>,
    pub(super) host: Option<Text<'m>>,
    pub(super) user_agent: Option<Text<'m>>,
    pub(super) referer: Option<&'m [u8]>,
    pub(super) server: Option<Text<'m>>,
    pub(super) location: Option<&'m [u8]>,
    pub(super) content_type: Option<Text<'m>>,
    pub(super) content_encoding: Option<Text<'m>>,
    pub(super) content_length: Option<u64>,
    pub(super) content_range: ContentRange,
    pub(super) grpc_status: Option<u32>,
    pub(super) grpc_message: Option<Text<'m>>,
    pub(super) credentials: Option<&'static str>,
}

impl<'m> Known<'m> {
    pub(super) fn read(fields: Fields<'m>) -> Self {
        let mut known = Self::default();
        for field in fields.iter() {
            let text = Some(field.value);
            match field.name.0 {
                b":method" => known.method = text,
                b":scheme" => known.scheme = text,
                b":authority" => known.authority = Some(field.value.0),
                b":path" => known.path = text,
                b":protocol" => known.protocol = text,
                b":status" => known.status = number(field.value).and_then(|status| status.try_into().ok()),
                b"host" => known.host = text,
                b"user-agent" => known.user_agent = text,
                b"referer" => known.referer = Some(field.value.0),
                b"server" => known.server = text,
                b"location" => known.location = Some(field.value.0),
                b"content-type" => known.content_type = text,
                b"content-encoding" => known.content_encoding = text,
                b"content-length" => known.content_length = number(field.value),
                b"content-range" => known.content_range = ContentRange::parse(field.value.0),
                b"grpc-status" => {
                    known.grpc_status = number(field.value).and_then(|status| status.try_into().ok())
                }
                b"grpc-message" => known.grpc_message = text,
                _ => known.credentials = foremost(known.credentials, field.credentials),
            }
        }
        known
    }

    /// Returns the number of octets of text in a message with all these fields.
    pub(super) fn text_len(&self) -> usize {
        let texts = [
            self.method,
            self.scheme,
            self.path,
            self.protocol,
            self.host,
            self.user_agent,
            self.server,
            self.content_type,
            self.content_encoding,
            self.grpc_message,
            self.authority.map(Text),
            self.referer.map(Text),
            self.location.map(Text),
        ];
        texts.iter().flatten().map(|text| text.0.len()).sum()
    }

    /// Returns the fields without their texts, except for a method, which is limited to the usual length.
    pub(super) fn without_texts(self) -> Self {
        const METHOD_LEN_MAX: usize = 16;
        Self {
            method: self.method.map(|method| Text(method.0.get(..METHOD_LEN_MAX).unwrap_or(method.0))),
            status: self.status,
            content_length: self.content_length,
            content_range: self.content_range,
            grpc_status: self.grpc_status,
            credentials: self.credentials,
            ..Self::default()
        }
    }

    /// Returns service and method of a gRPC call, which are the two parts of its path; `None` for other requests.
    pub(super) fn grpc(&self) -> Option<(Text<'m>, Text<'m>)> {
        let content_type = self.content_type.filter(|name| name.0.starts_with(b"application/grpc"))?;
        // Excludes application/grpc-web, which is another protocol with a similar content type.
        if content_type.0.get(16).is_some_and(|next| !matches!(next, b'+' | b';')) {
            return None;
        }
        let path = self.path?.0.strip_prefix(b"/")?;
        let slash = path.iter().rposition(|octet| *octet == b'/')?;
        Some((Text(path.get(..slash)?), Text(path.get(slash + 1..)?)))
    }
}

fn number(text: Text<'_>) -> Option<u64> {
    // Rejects a sign, which Rust accepts in numbers.
    let digits =
        text.0.first().filter(|digit| digit.is_ascii_digit()).and(std::str::from_utf8(text.0).ok())?;
    digits.parse().ok()
}
