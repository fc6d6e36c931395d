//! Certificates read by the parser and by `x509-parser`: what x509-parser accepts has the same number, times and names.

use flowgauge::session::tls::{AltName, Certificate, CertificateTime, DistinguishedName};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::X509Name;

pub fn run(data: &[u8]) {
    let ours = Certificate::parse(data);
    let _ = serde_json::to_string(&ours).expect("every certificate can be serialized");
    let Ok((_, theirs)) = X509Certificate::from_der(data) else { return };
    if has_constructed_serial(data, theirs.raw_serial()) {
        return;
    }
    assert_eq!(ours.serial.0, theirs.raw_serial());
    let validity = theirs.validity();
    let time = |time: x509_parser::time::ASN1Time| Some(CertificateTime(time.timestamp()));
    assert_eq!((ours.not_before, ours.not_after), (time(validity.not_before), time(validity.not_after)));
    compare_names(&ours.issuer, theirs.issuer());
    compare_names(&ours.subject, theirs.subject());
    if let Ok(Some(alternative)) = theirs.subject_alternative_name()
        // By design: names are kept as they are, whether or not they are ASCII.
        && !alternative.value.general_names.iter().any(|name| matches!(name, GeneralName::Invalid(..)))
    {
        let expected: Vec<_> = alternative.value.general_names.iter().filter_map(their_alternative).collect();
        let found: Vec<_> = ours.alt_names.iter().filter_map(alternative_name).collect();
        assert_eq!(found, expected);
    }
}

/// Whether the serial number is an INTEGER in the constructed form, which X.690 section 8.3.1 does not have: refused here,
/// taken by x509-parser.
fn has_constructed_serial(data: &[u8], serial: &[u8]) -> bool {
    let offset = serial.as_ptr().addr().checked_sub(data.as_ptr().addr());
    offset
        .and_then(|offset| data.get(..offset)?.split_last_chunk::<2>())
        .is_some_and(|(_, [tag, _])| *tag == 0x22)
}

/// Attributes whose value is text of UTF-8 or ASCII. By design, attributes behind one that is damaged are read;
/// x509-parser ends there.
fn compare_names(ours: &DistinguishedName<'_>, theirs: &X509Name<'_>) {
    let ours: Vec<_> = ours.attributes().collect();
    // A mistake of x509-parser: it takes an empty value of another type for the type of an attribute.
    let theirs: Vec<_> =
        theirs.iter_attributes().filter(|theirs| !theirs.attr_type().as_bytes().is_empty()).collect();
    assert!(ours.len() >= theirs.len());
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

fn their_alternative(name: &GeneralName<'_>) -> Option<(&'static str, Vec<u8>)> {
    match name {
        GeneralName::DNSName(text) => Some(("dns", text.as_bytes().to_vec())),
        GeneralName::RFC822Name(text) => Some(("email", text.as_bytes().to_vec())),
        GeneralName::URI(text) => Some(("uri", text.as_bytes().to_vec())),
        _ => None,
    }
}
