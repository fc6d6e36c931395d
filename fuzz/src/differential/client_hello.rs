//! ClientHello and ServerHello read by the parser and by `tls-parser`: messages that tls-parser accepts have the same
//! fields, extensions, names and numbers.

use flowgauge::protocols::tls::{ClientHello, ServerHello, Transport};
use tls_parser::{
    TlsExtension, TlsExtensionType, parse_tls_client_hello_extensions, parse_tls_handshake_client_hello,
    parse_tls_handshake_server_hello, parse_tls_server_hello_extensions,
};

pub fn run(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else { return };
    if choice & 1 == 0 { client(body) } else { server(body) }
}

fn client(body: &[u8]) {
    let ours = ClientHello::parse(body, Transport::Stream);
    let theirs = parse_tls_handshake_client_hello(body);
    let Ok((rest, theirs)) = theirs else { return };
    let ours = ours.expect("tls-parser found a ClientHello");
    let _ = (ours.ja3(), ours.ja4(), ours.version());
    flowgauge::export::write_json(&mut Vec::new(), &ours, flowgauge::export::Style::default());
    assert_eq!((ours.legacy_version.0, ours.random.0), (theirs.version.0, theirs.random));
    assert_eq!(ours.session_id.0, theirs.session_id.unwrap_or_default());
    let suites: Vec<u16> = ours.cipher_suites.iter().map(|suite| suite.0).collect();
    assert_eq!(suites, theirs.ciphers.iter().map(|suite| suite.0).collect::<Vec<_>>());
    assert_eq!(ours.compression_methods.0, theirs.comp.iter().map(|method| method.0).collect::<Vec<_>>());
    let Some(extensions) = theirs.ext.filter(|_| rest.is_empty()) else { return };
    let Ok(([], extensions)) = parse_tls_client_hello_extensions(extensions) else { return };
    let kinds: Vec<u16> = ours.extensions.iter().map(|extension| extension.kind.0).collect();
    assert_eq!(kinds, extensions.iter().map(kind).collect::<Vec<_>>());
    for (number, extension) in extensions.iter().enumerate() {
        // Of several extensions of a type, the first is used.
        if kinds[..number].contains(&kind(extension)) {
            continue;
        }
        match extension {
            // By design: the parser ends lists by their length field, which tls-parser ignores.
            TlsExtension::EllipticCurves(groups) if is_list_whole(ours.extensions.find(10)) => {
                let found: Vec<u16> = ours.supported_groups().iter().map(|group| group.0).collect();
                assert_eq!(found, groups.iter().map(|group| group.0).collect::<Vec<_>>());
            }
            TlsExtension::SignatureAlgorithms(schemes) if is_list_whole(ours.extensions.find(13)) => {
                let found: Vec<u16> = ours.signature_algorithms().iter().map(|scheme| scheme.0).collect();
                assert_eq!(&found, schemes);
            }
            // A bug in tls-parser: it reads two octets as the version that a server selected.
            TlsExtension::SupportedVersions(versions)
                if is_short_list_whole(ours.extensions.find(43))
                    && ours.extensions.find(43).is_none_or(|data| data.len() != 2) =>
            {
                let found: Vec<u16> = ours.supported_versions().iter().map(|version| version.0).collect();
                assert_eq!(found, versions.iter().map(|version| version.0).collect::<Vec<_>>());
            }
            TlsExtension::ALPN(names) if is_list_whole(ours.extensions.find(16)) => {
                assert_eq!(ours.alpn().iter().map(|name| name.0).collect::<Vec<_>>(), *names);
            }
            // By design: the parser also reads names beyond the length of the list.
            TlsExtension::SNI(names) if is_list_whole(ours.extensions.find(0)) => {
                let host = names.iter().find(|(kind, _)| kind.0 == 0).map(|(_, name)| *name);
                assert_eq!(ours.server_name().map(|name| name.0), host);
            }
            TlsExtension::EcPointFormats(formats) if is_short_list_whole(ours.extensions.find(11)) => {
                assert_eq!(ours.ec_point_formats(), *formats);
            }
            _ => {}
        }
    }
}

/// Returns whether a list has all octets after its length of two octets.
fn is_list_whole(data: Option<&[u8]>) -> bool {
    matches!(data, Some([high, low, list @ ..]) if usize::from(u16::from_be_bytes([*high, *low])) == list.len())
}

/// Returns whether a list has all octets after its length of one octet.
fn is_short_list_whole(data: Option<&[u8]>) -> bool {
    matches!(data, Some([len, list @ ..]) if usize::from(*len) == list.len())
}

fn server(body: &[u8]) {
    let ours = ServerHello::parse(body, None);
    let Ok((rest, theirs)) = parse_tls_handshake_server_hello(body) else { return };
    let ours = ours.expect("tls-parser found a ServerHello");
    flowgauge::export::write_json(&mut Vec::new(), &ours, flowgauge::export::Style::default());
    assert_eq!((ours.legacy_version.0, ours.random.0), (theirs.version.0, theirs.random));
    assert_eq!(ours.session_id.0, theirs.session_id.unwrap_or_default());
    assert_eq!(ours.cipher_suite.0, theirs.cipher.0);
    let Some(extensions) = theirs.ext.filter(|_| rest.is_empty()) else { return };
    let Ok(([], extensions)) = parse_tls_server_hello_extensions(extensions) else { return };
    let kinds: Vec<u16> = ours.extensions.iter().map(|extension| extension.kind.0).collect();
    assert_eq!(kinds, extensions.iter().map(server_kind).collect::<Vec<_>>());
}

/// Returns the type of an extension of a ServerHello.
fn server_kind(extension: &TlsExtension<'_>) -> u16 {
    match extension {
        // A bug in tls-parser: in a ServerHello, it reads extension 21, padding (RFC 7685 section 3), as
        // encrypt_then_mac, and does not support extension 22, which is encrypt_then_mac (RFC 7366 section 2).
        TlsExtension::EncryptThenMac => TlsExtensionType::Padding.0,
        extension => kind(extension),
    }
}

fn kind(extension: &TlsExtension<'_>) -> u16 {
    match extension {
        TlsExtension::Grease(kind, _) | TlsExtension::Unknown(TlsExtensionType(kind), _) => *kind,
        extension => TlsExtensionType::from(extension).0,
    }
}
