//! Certificates read by the parser and by `x509-parser`: those that x509-parser accepts have the same serial number,
//! times and names.
//!
//! By design, the parser requires the whole identifier of a value (X.690 section 8.1.2). x509-parser compares only the
//! tag number and ignores the class and the constructed bit: it reads `[16]` as a SEQUENCE. Therefore a field is
//! compared only if its identifier and those of all outer values are right.

use flowgauge::protocols::tls::{AltName, Certificate, CertificateTime, DistinguishedName};
use x509_parser::asn1_rs::{Any, Tag};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// 2.5.29.17, the type of the extension with the alternative names of a subject.
const SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 0x11];

pub fn run(data: &[u8]) {
    let ours = Certificate::parse(data);
    flowgauge::export::write_json(&mut Vec::new(), &ours, flowgauge::export::Style::default());
    let Ok((_, theirs)) = X509Certificate::from_der(data) else { return };
    let Some(fields) = Fields::read(data) else { return };
    assert_eq!(ours.serial.0, theirs.raw_serial());
    let times =
        [(ours.not_before, theirs.validity().not_before), (ours.not_after, theirs.validity().not_after)];
    for ((ours, theirs), value) in times.into_iter().zip(values(fields.validity)) {
        compare_times(ours, theirs, &value);
    }
    compare_names(&ours.issuer, theirs.issuer(), fields.issuer);
    compare_names(&ours.subject, theirs.subject(), fields.subject);
    if let Ok(Some(alternative)) = theirs.subject_alternative_name()
        && fields.extensions.is_some_and(has_names)
    {
        let expected: Vec<_> = alternative.value.general_names.iter().filter_map(their_alternative).collect();
        let found: Vec<_> = ours.alt_names.iter().filter_map(alternative_name).collect();
        assert_eq!(found, expected);
    }
}

/// A value as delimited by x509-parser.
struct Value<'a> {
    /// Identifier octet, or zero if the parser does not read such a value.
    identifier: u8,
    content: &'a [u8],
}

/// Returns consecutive values. The last one has the identifier zero if the parser stops there.
fn values(data: &[u8]) -> Vec<Value<'_>> {
    let mut values = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let Some((value, behind)) = split_value(rest) else {
            values.push(Value { identifier: 0, content: rest });
            break;
        };
        values.push(value);
        rest = behind;
    }
    values
}

/// Splits off the first value if its identifier has one octet and its length field has at most four octets.
///
/// By design, the parser reads no other values: no value of a certificate has a tag number above 30 (RFC 5280 appendix
/// A), and the length field, which is as short as possible in DER (X.690 section 10.1), needs no more octets in a
/// handshake.
fn split_value(data: &[u8]) -> Option<(Value<'_>, &[u8])> {
    const HEADER_LEN_MAX: usize = 5;
    let (behind, any) = Any::from_der(data).ok()?;
    let header_len = data.len() - behind.len() - any.data.len();
    match any.header.raw_tag() {
        Some([identifier]) if header_len <= HEADER_LEN_MAX => {
            Some((Value { identifier: *identifier, content: any.data }, behind))
        }
        _ => None,
    }
}

/// Contents of the fields that are compared (RFC 5280 section 4.1).
struct Fields<'a> {
    issuer: &'a [u8],
    validity: &'a [u8],
    subject: &'a [u8],
    extensions: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// Returns the fields, or `None` if the identifier of one of them is wrong.
    fn read(data: &'a [u8]) -> Option<Self> {
        let signed = inner(inner(data, SEQUENCE)?, SEQUENCE)?;
        let mut fields = values(signed).into_iter().peekable();
        fields.next_if(|field| field.identifier == VERSION);
        let mut next_of = |identifier| {
            fields.next().filter(|field| field.identifier == identifier).map(|field| field.content)
        };
        next_of(INTEGER)?;
        next_of(SEQUENCE)?;
        let (issuer, validity, subject) = (next_of(SEQUENCE)?, next_of(SEQUENCE)?, next_of(SEQUENCE)?);
        let extensions = fields.find(|field| field.identifier == EXTENSIONS).map(|field| field.content);
        Some(Self { issuer, validity, subject, extensions })
    }
}

/// Returns the content of the first value if it has this identifier.
fn inner(data: &[u8], identifier: u8) -> Option<&[u8]> {
    let first = values(data).into_iter().next()?;
    (first.identifier == identifier).then_some(first.content)
}

/// Returns whether all attributes of a name have the right identifiers, and no set is empty (RFC 5280 section 4.1.2.4).
///
/// By design, the parser reads attributes after a damaged one; x509-parser stops there.
fn has_right_identifiers(name: &[u8]) -> bool {
    // The parser ignores the identifier of an attribute; x509-parser ignores all of it except its tag number.
    let is_attribute = |value: &Value<'_>| {
        let parts = values(value.content);
        value.identifier & 0x1f == SEQUENCE & 0x1f
            && matches!(
                parts[..],
                [Value { identifier: OBJECT_IDENTIFIER, .. }, Value { identifier: 1.., .. }, ..]
            )
    };
    values(name).iter().all(|set| {
        let attributes = values(set.content);
        set.identifier == SET && !attributes.is_empty() && attributes.iter().all(is_attribute)
    })
}

/// Returns whether the alternative names and all outer values have the right identifiers: the sequence of
/// extensions, the type of each extension up to the names, the critical flag, the octet string, and the sequence of
/// names.
///
/// A name of text in the constructed form, which DER excludes (X.690 section 10.2), is `AltName::Other` by design.
fn has_names(extensions: &[u8]) -> bool {
    const CONSTRUCTED_TEXTS: [u8; 3] = [0xa1, 0xa2, 0xa6];
    let is_right = |name: &Value<'_>| name.identifier != 0 && !CONSTRUCTED_TEXTS.contains(&name.identifier);
    for extension in inner(extensions, SEQUENCE).map(values).unwrap_or_default() {
        let mut parts = values(extension.content).into_iter().peekable();
        match parts.next() {
            Some(kind) if extension.identifier == 0 || kind.identifier != OBJECT_IDENTIFIER => return false,
            Some(kind) if kind.content == SUBJECT_ALT_NAME => {
                parts.next_if(|part| part.identifier == BOOLEAN);
                let octets = parts.next().filter(|octets| octets.identifier == OCTET_STRING);
                let names = octets.and_then(|octets| inner(octets.content, SEQUENCE));
                return names.is_some_and(|names| values(names).iter().all(is_right));
            }
            Some(_) => {}
            None => return false,
        }
    }
    false
}

fn compare_times(ours: Option<CertificateTime>, theirs: ASN1Time, value: &Value<'_>) {
    if !matches!(value.identifier, UTC_TIME | GENERALIZED_TIME) {
        return;
    }
    // A bug in x509-parser: it ignores the sign of a difference to UTC of less than an hour.
    let error = match value.content {
        [.., b'-', b'0', b'0', tens, ones] => 2 * 60 * (i64::from(tens - b'0') * 10 + i64::from(ones - b'0')),
        _ => 0,
    };
    assert_eq!(ours, Some(CertificateTime(theirs.timestamp() + error)));
}

/// Compares the number of attributes, and the values that are text in UTF-8 or ASCII.
fn compare_names(ours: &DistinguishedName<'_>, theirs: &X509Name<'_>, name: &[u8]) {
    if !has_right_identifiers(name) {
        return;
    }
    let ours: Vec<_> = ours.attributes().collect();
    let theirs: Vec<_> = theirs.iter_attributes().collect();
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        if let Ok(text) = theirs.as_str() {
            assert_eq!(ours.text(), text);
        }
    }
}

fn alternative_name(name: AltName<'_>) -> Option<(&'static str, Vec<u8>)> {
    match name {
        AltName::Dns(text) => Some(("dns", text.0.to_vec())),
        AltName::Email(text) => Some(("email", text.0.to_vec())),
        AltName::Uri(text) => Some(("uri", text.0.to_vec())),
        _ => None,
    }
}

/// Returns a name that is text. x509-parser marks it as invalid if it is not UTF-8, but keeps its octets.
fn their_alternative(name: &GeneralName<'_>) -> Option<(&'static str, Vec<u8>)> {
    match name {
        GeneralName::DNSName(text) => Some(("dns", text.as_bytes().to_vec())),
        GeneralName::RFC822Name(text) => Some(("email", text.as_bytes().to_vec())),
        GeneralName::URI(text) => Some(("uri", text.as_bytes().to_vec())),
        GeneralName::Invalid(Tag(1), octets) => Some(("email", octets.to_vec())),
        GeneralName::Invalid(Tag(2), octets) => Some(("dns", octets.to_vec())),
        GeneralName::Invalid(Tag(6), octets) => Some(("uri", octets.to_vec())),
        _ => None,
    }
}
