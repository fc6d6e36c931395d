//! Certificates of TLS connections.

use std::net::IpAddr;

use super::open::{Copier, allocated};
use crate::protocols::tls::{AltName, Certificate, CertificateTime, Hex};
use crate::session::Role;

/// Maximum number of names of a certificate that are kept, of each kind.
const NAME_COUNT_MAX: usize = 256;

crate::message! {
    /// A certificate that a side presented in the clear.
    #[derive(Clone, Debug, PartialEq)]
    "transaction.x509" pub struct X509 {
        /// Role of the side that presented the certificate.
        pub role: Role,
        /// Position in the chain: 0 for the certificate of the side itself.
        pub position: u32,
        /// SHA-256 digest of the certificate.
        pub sha256: Box<str>,
        /// SHA-1 digest of the certificate.
        pub sha1: Box<str>,
        /// Version of the certificate: 1 to 3.
        pub version: Option<u8>,
        /// Serial number in hexadecimal digits.
        pub serial: Box<str>,
        /// Name of the subject.
        pub subject: Box<str>,
        /// Name of the issuer.
        pub issuer: Box<str>,
        /// Start of the validity.
        pub not_before: Option<CertificateTime>,
        /// End of the validity.
        pub not_after: Option<CertificateTime>,
        /// DNS names of servers for which the certificate is valid, at most 256.
        pub dns_names: Vec<Box<str>>,
        /// URIs for which the certificate is valid.
        pub uris: Vec<Box<str>> [sparse],
        /// Mail addresses for which the certificate is valid.
        pub emails: Vec<Box<str>> [sparse],
        /// IP addresses for which the certificate is valid.
        pub addresses: Vec<IpAddr> [sparse],
        /// Algorithm of the key, by the name of its object identifier, or the identifier.
        pub key_algorithm: Option<Box<str>>,
        /// Kind of the key: `rsa`, `dsa`, `ecdsa`, `ed25519` or `ed448`.
        pub key_type: Option<Box<str>>,
        /// Length of the key in bits.
        pub key_len: Option<u32>,
        /// Public exponent of an RSA key, in decimal digits.
        pub exponent: Option<Box<str>>,
        /// Curve of an elliptic key, by the name of its object identifier, or the identifier.
        pub curve: Option<Box<str>>,
        /// Algorithm of the signature, by the name of its object identifier, or the identifier.
        pub signature_algorithm: Option<Box<str>>,
        /// True if the subject is an authority; absent without basic constraints.
        pub is_ca: Option<bool>,
        /// Maximum number of authorities below this one.
        pub path_len: Option<u32>,
        ..
        /// Length of the certificate in octets.
        pub len: u64,
    }
}

impl X509 {
    /// Returns the memory in bytes that was allocated.
    pub(crate) fn heap_len(&self) -> usize {
        let texts = [&self.sha256, &self.sha1, &self.serial, &self.subject, &self.issuer];
        let optional =
            [&self.key_algorithm, &self.key_type, &self.exponent, &self.curve, &self.signature_algorithm];
        let lists = [&self.dns_names, &self.uris, &self.emails];
        let of_lists = lists.into_iter().flatten().chain(texts).chain(optional.into_iter().flatten());
        let places = lists.into_iter().map(|list| allocated(16 * list.capacity())).sum::<usize>();
        let addresses = allocated(self.addresses.capacity() * size_of::<IpAddr>());
        of_lists.map(|text| allocated(text.len())).sum::<usize>() + places + addresses
    }

    pub(super) fn new(certificate: &Certificate<'_>, role: Role, position: u32, copier: &mut Copier) -> Self {
        let details = certificate.details();
        let mut x509 = Self {
            role,
            position,
            sha256: copier.display(Hex(&certificate.sha256())),
            sha1: copier.display(Hex(&certificate.sha1())),
            version: details.version,
            serial: copier.display(certificate.serial),
            subject: copier.display(certificate.subject),
            issuer: copier.display(certificate.issuer),
            not_before: certificate.not_before,
            not_after: certificate.not_after,
            dns_names: Vec::new(),
            uris: Vec::new(),
            emails: Vec::new(),
            addresses: Vec::new(),
            key_algorithm: None,
            key_type: None,
            key_len: None,
            exponent: None,
            curve: None,
            signature_algorithm: details.signature_algorithm.map(|oid| copier.display(oid)),
            is_ca: details.is_ca,
            path_len: details.path_len,
            len: certificate.der.len() as u64,
        };
        for name in certificate.alt_names.iter() {
            let (names, text) = match name {
                AltName::Dns(name) => (&mut x509.dns_names, name),
                AltName::Uri(uri) => (&mut x509.uris, uri),
                AltName::Email(address) => (&mut x509.emails, address),
                AltName::Ip(address) => {
                    if x509.addresses.len() < NAME_COUNT_MAX {
                        x509.addresses.push(address);
                    } else {
                        copier.is_truncated = true;
                    }
                    continue;
                }
                _ => continue,
            };
            if names.len() < NAME_COUNT_MAX {
                names.push(copier.text(text));
            } else {
                copier.is_truncated = true;
            }
        }
        if let Some(key) = details.key {
            x509.key_algorithm = Some(copier.display(key.algorithm));
            x509.key_type = key.kind.map(Into::into);
            x509.key_len = key.len;
            x509.exponent = key.exponent.map(|exponent| copier.display(exponent));
            x509.curve = key.curve.map(|curve| copier.display(curve));
        }
        x509
    }
}
