//! Types for the numbers of the IANA registries of TLS, with their names.

use std::fmt;

use super::cipher_names::CIPHER_NAMES;

/// Defines a type for the numbers of a registry, which is displayed and written as the registered name, or otherwise
/// as `0xNNNN`.
macro_rules! numbers {
    ($(#[$meta:meta])* $type:ident($repr:ty), $width:literal, $name:expr) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(pub $repr);

        impl $type {
            /// Returns the registered name of the number, if known to this crate.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                let name: fn($repr) -> Option<&'static str> = $name;
                name(self.0)
            }
        }

        impl From<$repr> for $type {
            fn from(number: $repr) -> Self {
                Self(number)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!("0x{:0", $width, "x}"), self.0),
                }
            }
        }

        crate::row::cells! { registered $type; }
        crate::checkpoint::state! { numbers $type }
    };
}

numbers! {
    /// Version of TLS or DTLS as encoded on the wire: SSL 3.0 is 0x0300 and TLS 1.3 is 0x0304. The numbers of DTLS
    /// descend: DTLS 1.0 is 0xfeff and DTLS 1.2 is 0xfefd.
    Version(u16), "4", version_name
}

numbers! {
    /// Number of a TLS cipher suite.
    CipherSuite(u16), "4", |number| {
        let place = CIPHER_NAMES.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        CIPHER_NAMES.get(place).map(|(_, name)| *name)
    }
}

numbers! {
    /// Type of a TLS extension.
    ExtensionType(u16), "4", extension_name
}

numbers! {
    /// Number of a named group for key exchange, formerly an elliptic curve.
    NamedGroup(u16), "4", group_name
}

numbers! {
    /// Number of a TLS signature scheme; before TLS 1.3 a pair of hash and signature algorithm.
    SignatureScheme(u16), "4", scheme_name
}

numbers! {
    /// Severity of a TLS alert: warning or fatal.
    AlertLevel(u8), "2", |number| match number {
        1 => Some("warning"),
        2 => Some("fatal"),
        _ => None,
    }
}

numbers! {
    /// Description of a TLS alert: its reason.
    AlertDescription(u8), "2", alert_name
}

impl Version {
    /// SSL 2.0.
    pub const SSL_2_0: Self = Self(0x0002);
    /// SSL 3.0 (RFC 6101).
    pub const SSL_3_0: Self = Self(0x0300);
    /// TLS 1.0 (RFC 2246).
    pub const TLS_1_0: Self = Self(0x0301);
    /// TLS 1.1 (RFC 4346).
    pub const TLS_1_1: Self = Self(0x0302);
    /// TLS 1.2 (RFC 5246).
    pub const TLS_1_2: Self = Self(0x0303);
    /// TLS 1.3 (RFC 8446).
    pub const TLS_1_3: Self = Self(0x0304);
    /// DTLS as implemented by OpenSSL before the standard, still in use by some VPNs.
    pub const DTLS_OPENSSL: Self = Self(0x0100);
    /// DTLS 1.0 (RFC 4347).
    pub const DTLS_1_0: Self = Self(0xfeff);
    /// DTLS 1.2 (RFC 6347).
    pub const DTLS_1_2: Self = Self(0xfefd);
    /// DTLS 1.3 (RFC 9147).
    pub const DTLS_1_3: Self = Self(0xfefc);

    /// Returns whether the version is one of DTLS.
    #[must_use]
    pub const fn is_datagram(self) -> bool {
        self.0 >> 8 == 0xfe || self.0 == 0x0100
    }

    /// Returns whether the version is TLS 1.3, a draft of it, or DTLS 1.3, which encrypt all messages after the hellos.
    #[must_use]
    pub const fn hides_handshake(self) -> bool {
        matches!(self.0, 0x0304 | 0xfefc) || is_draft(self.0)
    }

    /// Returns a number for comparison that increases with the version, also for DTLS. A draft of TLS 1.3 precedes TLS
    /// 1.3.
    pub(super) const fn rank(self) -> u32 {
        let (major, minor) = (self.0 as u32 >> 8, self.0 as u32 & 0xff);
        match major {
            0xfe => 0xfe_0000 | (0xff - minor) << 8,
            _ if is_draft(self.0) => (Self::TLS_1_2.0 as u32) << 8 | minor,
            _ => (self.0 as u32) << 8,
        }
    }
}

/// Returns whether a number is reserved by GREASE, which tests that implementations tolerate unknown values (RFC 8701).
#[must_use]
pub const fn is_grease(number: u16) -> bool {
    number & 0x0f0f == 0x0a0a && number >> 8 == number & 0xff
}

/// Returns whether `number` is the version of a prerelease of TLS 1.3, as numbered by IETF drafts, Facebook and Google.
const fn is_draft(number: u16) -> bool {
    matches!(number >> 8, 0x7e | 0x7f | 0xfb)
}

macro_rules! draft_names {
    ($($draft:literal)*) => { [$(concat!("TLS 1.3 (draft ", $draft, ")")),*] };
}

/// Names of the drafts of TLS 1.3, indexed by draft number: their version numbers are 0x7f00 and up, and draft 28 is
/// the last.
const DRAFT_NAMES: [&str; 29] =
    draft_names!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28);

fn version_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0002 => "SSL 2.0",
        0x0300 => "SSL 3.0",
        0x0301 => "TLS 1.0",
        0x0302 => "TLS 1.1",
        0x0303 => "TLS 1.2",
        0x0304 => "TLS 1.3",
        0x0100 => "DTLS 1.0 (OpenSSL)",
        0xfeff => "DTLS 1.0",
        0xfefd => "DTLS 1.2",
        0xfefc => "DTLS 1.3",
        0x7e01 => "TLS 1.3 (Google experiment 1)",
        0x7e02 => "TLS 1.3 (Google experiment 2)",
        0x7e03 => "TLS 1.3 (Google experiment 3)",
        0x7f00..=0x7f1c => return DRAFT_NAMES.get(usize::from(number & 0xff)).copied(),
        0xfb17 => "TLS 1.3 (Facebook draft 23)",
        0xfb1a => "TLS 1.3 (Facebook draft 26)",
        _ if is_grease(number) => "GREASE",
        _ => return None,
    })
}

fn extension_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0 => "server_name",
        1 => "max_fragment_length",
        2 => "client_certificate_url",
        3 => "trusted_ca_keys",
        4 => "truncated_hmac",
        5 => "status_request",
        6 => "user_mapping",
        7 => "client_authz",
        8 => "server_authz",
        9 => "cert_type",
        10 => "supported_groups",
        11 => "ec_point_formats",
        12 => "srp",
        13 => "signature_algorithms",
        14 => "use_srtp",
        15 => "heartbeat",
        16 => "application_layer_protocol_negotiation",
        17 => "status_request_v2",
        18 => "signed_certificate_timestamp",
        19 => "client_certificate_type",
        20 => "server_certificate_type",
        21 => "padding",
        22 => "encrypt_then_mac",
        23 => "extended_master_secret",
        24 => "token_binding",
        25 => "cached_info",
        26 => "tls_lts",
        27 => "compress_certificate",
        28 => "record_size_limit",
        29 => "pwd_protect",
        30 => "pwd_clear",
        31 => "password_salt",
        32 => "ticket_pinning",
        33 => "tls_cert_with_extern_psk",
        34 => "delegated_credential",
        35 => "session_ticket",
        36 => "tlmsp",
        37 => "tlmsp_proxying",
        38 => "tlmsp_delegate",
        39 => "supported_ekt_ciphers",
        40 => "key_share (draft)",
        41 => "pre_shared_key",
        42 => "early_data",
        43 => "supported_versions",
        44 => "cookie",
        45 => "psk_key_exchange_modes",
        47 => "certificate_authorities",
        48 => "oid_filters",
        49 => "post_handshake_auth",
        50 => "signature_algorithms_cert",
        51 => "key_share",
        52 => "transparency_info",
        53 => "connection_id (draft)",
        54 => "connection_id",
        55 => "external_id_hash",
        56 => "external_session_id",
        57 => "quic_transport_parameters",
        58 => "ticket_request",
        59 => "dnssec_chain",
        60 => "sequence_number_encryption_algorithms",
        61 => "rrc",
        62 => "tls_flags",
        0x3374 => "next_protocol_negotiation",
        0x4469 | 0x44cd => "application_settings",
        0x754f | 0x7550 => "channel_id",
        0xfd00 => "ech_outer_extensions",
        0xfe0d => "encrypted_client_hello",
        0xff01 => "renegotiation_info",
        0xffa5 => "quic_transport_parameters (draft)",
        0xffce => "encrypted_server_name",
        _ if is_grease(number) => "GREASE",
        _ => return None,
    })
}

fn group_name(number: u16) -> Option<&'static str> {
    Some(match number {
        1 => "sect163k1",
        2 => "sect163r1",
        3 => "sect163r2",
        4 => "sect193r1",
        5 => "sect193r2",
        6 => "sect233k1",
        7 => "sect233r1",
        8 => "sect239k1",
        9 => "sect283k1",
        10 => "sect283r1",
        11 => "sect409k1",
        12 => "sect409r1",
        13 => "sect571k1",
        14 => "sect571r1",
        15 => "secp160k1",
        16 => "secp160r1",
        17 => "secp160r2",
        18 => "secp192k1",
        19 => "secp192r1",
        20 => "secp224k1",
        21 => "secp224r1",
        22 => "secp256k1",
        23 => "secp256r1",
        24 => "secp384r1",
        25 => "secp521r1",
        26 => "brainpoolP256r1",
        27 => "brainpoolP384r1",
        28 => "brainpoolP512r1",
        29 => "x25519",
        30 => "x448",
        31 => "brainpoolP256r1tls13",
        32 => "brainpoolP384r1tls13",
        33 => "brainpoolP512r1tls13",
        34 => "GC256A",
        35 => "GC256B",
        36 => "GC256C",
        37 => "GC256D",
        38 => "GC512A",
        39 => "GC512B",
        40 => "GC512C",
        41 => "curveSM2",
        256 => "ffdhe2048",
        257 => "ffdhe3072",
        258 => "ffdhe4096",
        259 => "ffdhe6144",
        260 => "ffdhe8192",
        512 => "MLKEM512",
        513 => "MLKEM768",
        514 => "MLKEM1024",
        0x11eb => "SecP256r1MLKEM768",
        0x11ec => "X25519MLKEM768",
        0x11ed => "SecP384r1MLKEM1024",
        0x11ee => "curveSM2MLKEM768",
        0x4138 => "CECPQ2",
        0x6399 => "X25519Kyber768Draft00",
        0x639a => "SecP256r1Kyber768Draft00",
        0xff01 => "arbitrary_explicit_prime_curves",
        0xff02 => "arbitrary_explicit_char2_curves",
        _ if is_grease(number) => "GREASE",
        _ => return None,
    })
}

fn scheme_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0201 => "rsa_pkcs1_sha1",
        0x0203 => "ecdsa_sha1",
        0x0401 => "rsa_pkcs1_sha256",
        0x0403 => "ecdsa_secp256r1_sha256",
        0x0420 => "rsa_pkcs1_sha256_legacy",
        0x0501 => "rsa_pkcs1_sha384",
        0x0503 => "ecdsa_secp384r1_sha384",
        0x0520 => "rsa_pkcs1_sha384_legacy",
        0x0601 => "rsa_pkcs1_sha512",
        0x0603 => "ecdsa_secp521r1_sha512",
        0x0620 => "rsa_pkcs1_sha512_legacy",
        0x0708 => "sm2sig_sm3",
        0x0804 => "rsa_pss_rsae_sha256",
        0x0805 => "rsa_pss_rsae_sha384",
        0x0806 => "rsa_pss_rsae_sha512",
        0x0807 => "ed25519",
        0x0808 => "ed448",
        0x0809 => "rsa_pss_pss_sha256",
        0x080a => "rsa_pss_pss_sha384",
        0x080b => "rsa_pss_pss_sha512",
        0x081a => "ecdsa_brainpoolP256r1tls13_sha256",
        0x081b => "ecdsa_brainpoolP384r1tls13_sha384",
        0x081c => "ecdsa_brainpoolP512r1tls13_sha512",
        0x0904 => "mldsa44",
        0x0905 => "mldsa65",
        0x0906 => "mldsa87",
        _ if is_grease(number) => "GREASE",
        _ => return None,
    })
}

fn alert_name(number: u8) -> Option<&'static str> {
    Some(match number {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        21 => "decryption_failed",
        22 => "record_overflow",
        30 => "decompression_failure",
        40 => "handshake_failure",
        41 => "no_certificate",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        52 => "too_many_cids_requested",
        60 => "export_restriction",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        100 => "no_renegotiation",
        109 => "missing_extension",
        110 => "unsupported_extension",
        111 => "certificate_unobtainable",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        114 => "bad_certificate_hash_value",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        117 => "general_error",
        120 => "no_application_protocol",
        121 => "ech_required",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_registry_and_unnamed_values_are_numbers() {
        assert_eq!(CipherSuite(0x1301).to_string(), "TLS_AES_128_GCM_SHA256");
        assert_eq!(CipherSuite(0xc02f).to_string(), "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
        assert_eq!(CipherSuite(0x00ff).to_string(), "TLS_EMPTY_RENEGOTIATION_INFO_SCSV");
        assert_eq!(CipherSuite(0xfff0).to_string(), "0xfff0");
        assert_eq!(AlertDescription(200).to_string(), "0xc8");
        assert!(CIPHER_NAMES.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn grease_has_sixteen_values() {
        let all: Vec<u16> = (0..=u16::MAX).filter(|number| is_grease(*number)).collect();
        assert_eq!(all.len(), 16);
        assert_eq!((all.first(), all.last()), (Some(&0x0a0a), Some(&0xfafa)));
    }

    #[test]
    fn later_versions_compare_higher() {
        let ascending =
            [0x0002, 0x0300, 0x0301, 0x0302, 0x0303, 0x7f12, 0x7f1c, 0x0304, 0xfeff, 0xfefd, 0xfefc];
        assert!(ascending.map(|number| Version(number).rank()).is_sorted());
    }

    #[test]
    fn draft_versions_have_their_number() {
        // The names of tshark.
        for (number, name) in [
            (0x7f00, "TLS 1.3 (draft 0)"),
            (0x7f12, "TLS 1.3 (draft 18)"),
            (0x7f1c, "TLS 1.3 (draft 28)"),
            (0xfb17, "TLS 1.3 (Facebook draft 23)"),
            (0xfb1a, "TLS 1.3 (Facebook draft 26)"),
            (0x7f1d, "0x7f1d"),
            (0xfb18, "0xfb18"),
        ] {
            assert_eq!(Version(number).to_string(), name);
            assert!(Version(number).hides_handshake());
        }
    }
}
