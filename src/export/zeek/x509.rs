//! Rows of `x509.log`.

use std::net::IpAddr;

use crate::base::Timestamp;
use crate::protocols::tls::CertificateTime;
use crate::row::{List, ListOf};
use crate::session::Role;
use crate::transaction;

/// A certificate in `x509.log`.
#[derive(Clone, Copy, Debug)]
pub struct X509<'a> {
    x509: &'a transaction::X509,
    ts: Timestamp,
}

impl<'a> X509<'a> {
    pub(super) const fn new(x509: &'a transaction::X509, ts: Timestamp) -> Self {
        Self { x509, ts }
    }
}

/// Returns hexadecimal digits without octets of zero in front, of which the last one stays.
fn without_zeros(digits: &str) -> &str {
    let mut digits = digits;
    while let Some(rest) = digits.strip_prefix("00").filter(|rest| !rest.is_empty()) {
        digits = rest;
    }
    digits
}

/// Returns the items of a list, unless it is empty.
fn texts(items: &[Box<str>]) -> Option<List<impl Iterator<Item = &str> + Clone>> {
    (!items.is_empty()).then(|| List(items.iter().map(|item| &**item)))
}

/// Returns a time of a certificate; those before 1970 are 1970, and those after 2554 are 2554-07-21.
fn time(time: Option<CertificateTime>) -> Timestamp {
    let seconds = time.and_then(|time| u64::try_from(time.0).ok()).unwrap_or_default();
    Timestamp::from_parts(seconds, 0)
}

/// Returns OpenSSL's name of an algorithm of keys, or else the given one.
fn key_algorithm(name: &str) -> &str {
    match name {
        "ecPublicKey" => "id-ecPublicKey",
        name => name,
    }
}

crate::table! {
    /// Certificates of TLS: a certificate once per day, as the first one of a chain or another one, for client or server.
    impl['a] "zeek.x509" for X509<'a> as row {
        /// Time of the packet that completed the message with the certificate.
        "ts": Timestamp = row.ts;
        /// `sha256`.
        "fingerprint": &'a str = &*row.x509.sha256;
        /// `version`; 0 if it is not readable.
        "certificate.version": u64 = row.x509.version.unwrap_or(0).into();
        /// `serial` in upper case, without octets of zero in front.
        "certificate.serial": String = without_zeros(&row.x509.serial).to_ascii_uppercase();
        /// `subject`, in the notation of RFC 4514.
        "certificate.subject": &'a str = &*row.x509.subject;
        /// `issuer`, in the notation of RFC 4514.
        "certificate.issuer": &'a str = &*row.x509.issuer;
        /// `not_before`; 1970 for earlier times and unreadable ones, 2554-07-21 for later ones.
        "certificate.not_valid_before": Timestamp = time(row.x509.not_before);
        /// `not_after`, as `certificate.not_valid_before`.
        "certificate.not_valid_after": Timestamp = time(row.x509.not_after);
        /// `key_algorithm`.
        "certificate.key_alg": &'a str => row.x509.key_algorithm.as_deref().map_or("", key_algorithm);
        /// `signature_algorithm`.
        "certificate.sig_alg": &'a str => row.x509.signature_algorithm.as_deref().unwrap_or_default();
        /// `key_type`.
        "certificate.key_type": Option<&'a str> => row.x509.key_type.as_deref();
        /// `key_len`.
        "certificate.key_length": Option<u64> = row.x509.key_len.map(u64::from);
        /// `exponent`.
        "certificate.exponent": Option<&'a str> => row.x509.exponent.as_deref();
        /// `curve`.
        "certificate.curve": Option<&'a str> => row.x509.curve.as_deref();
        /// `dns_names`.
        "san.dns": Option<ListOf<&'a str>> => texts(&row.x509.dns_names);
        /// `uris`.
        "san.uri": Option<ListOf<&'a str>> => texts(&row.x509.uris);
        /// `emails`.
        "san.email": Option<ListOf<&'a str>> => texts(&row.x509.emails);
        /// `addresses`.
        "san.ip": Option<ListOf<IpAddr>> => (!row.x509.addresses.is_empty()).then(|| List(row.x509.addresses.iter().copied()));
        /// `is_ca`.
        "basic_constraints.ca": Option<bool> = row.x509.is_ca;
        /// `path_len`.
        "basic_constraints.path_len": Option<u64> = row.x509.path_len.map(u64::from);
        /// True if the certificate is the first one of a chain.
        "host_cert": bool = row.x509.position == 0;
        /// True if the client presented it.
        "client_cert": bool = row.x509.role == Role::Client;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_have_no_zeros_in_front() {
        let all = ["0099fa", "99fa", "000000", "00", "0100", ""].map(without_zeros);
        assert_eq!(all, ["99fa", "99fa", "00", "00", "0100", ""]);
    }
}
