//! Tests with the record data of the examples in the RFCs that define the DNS record types.

use super::data::RecordData;
use super::header::HEADER_LEN;
use super::numbers::RecordType;

/// Returns the displayed text of the record data that `digits` contains in hexadecimal, with optional spaces.
fn shown(record_type: u16, digits: &str) -> String {
    let digits: Vec<_> = digits.bytes().filter(|digit| *digit != b' ').collect();
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let mut message = vec![0; HEADER_LEN];
    message.extend(digits.chunks_exact(2).map(octet));
    RecordData::new(&message, (HEADER_LEN, message.len()), RecordType(record_type)).to_string()
}

const FOO_EXAMPLE_COM: &str = "03 66 6f 6f 07 65 78 61 6d 70 6c 65 03 63 6f 6d 00";

#[test]
fn services_match_appendix_d_of_rfc_9460() {
    let https = |digits: &str| shown(65, &digits.replace("NAME", FOO_EXAMPLE_COM));
    assert_eq!(https("0000 NAME"), "0 foo.example.com");
    assert_eq!(https("0001 00"), "1 .");
    assert_eq!(https("0010 NAME 0003 0002 0035"), "16 foo.example.com port=53");
    assert_eq!(https("0001 NAME 029b 0005 68656c6c6f"), "1 foo.example.com key667=\"hello\"");
    assert_eq!(https("0001 NAME 029b 0009 68656c6c6fd2716f6f"), "1 foo.example.com key667=\"hello\\210qoo\"");
    assert_eq!(
        https("0001 NAME 0006 0020 20010db8000000000000000000000001 20010db8000000000000000000530001"),
        "1 foo.example.com ipv6hint=2001:db8::1,2001:db8::53:1"
    );
    assert_eq!(
        https("0010 NAME 0000 0004 0001 0004 0001 0009 02 6832 05 68332d3139 0004 0004 c0000201"),
        "16 foo.example.com mandatory=alpn,ipv4hint alpn=\"h2,h3-19\" ipv4hint=192.0.2.1"
    );
    assert_eq!(https("0001 00 0005 0004 00010203 0002 0000"), "1 . ech=AAECAw== no-default-alpn");
}

#[test]
fn dnssec_types_match_rfc_4034_and_rfc_5155() {
    // Section 4.3 of RFC 4034.
    let nsec =
        format!("04 686f7374 {} 0006 400100000003 041b {} 20", &FOO_EXAMPLE_COM[12..], "00".repeat(26));
    assert_eq!(shown(47, &nsec), "host.example.com A MX RRSIG NSEC TYPE1234");
    // Section 5.4.
    assert_eq!(
        shown(43, "ec45 05 01 2BB183AF5F22588179A53B0A98631FAD1A292118"),
        "60485 5 1 2bb183af5f22588179a53b0a98631fad1a292118"
    );
    // Section 3.3, with a short signature.
    assert_eq!(
        shown(46, "0001 05 03 00015180 3E7C9DD7 3E5510D7 0a52 07 6578616d706c65 03 636f6d 00 a09074"),
        "A 5 3 86400 20030322173103 20030220173103 2642 example.com oJB0"
    );
    // Times as printed by `date`: the last second of a leap day, and the minimum and maximum.
    let times = |digits: &str| shown(249, &format!("00 {digits} 0003 0000 0000 0000"));
    assert_eq!(times("38BC5D7F 00000000"), ". 20000229235959 19700101000000 3 0 - -");
    assert_eq!(times("FFFFFFFF FFFFFFFF"), ". 21060207062815 21060207062815 3 0 - -");
    // Flags and salt of appendix A of RFC 5155, and the test vector of RFC 4648 section 10 as the hash.
    assert_eq!(shown(50, "01 01 000c 04 aabbccdd 06 666f6f626172 0001 40"), "1 1 12 aabbccdd CPNMUOJ1E8 A");
    assert_eq!(shown(51, "01 00 000c 00"), "1 0 12 -");
    assert_eq!(shown(50, "01 00 0001 00 01 66"), "1 0 1 - CO");
    assert_eq!(shown(48, "0101 03 05 0001"), "257 3 5 AAE=");
}

#[test]
fn other_types_match_their_rfcs() {
    // RFC 3597 section 5.
    assert_eq!(shown(62347, "0a000001"), "\\# 4 0a000001");
    // RFC 1035 section 3.3, RFC 2782, RFC 3403, RFC 6844 section 5.1.1, RFC 7553, RFC 7043.
    assert_eq!(shown(16, "05 68656c6c6f 03 612262 00"), "\"hello\" \"a\\\"b\" \"\"");
    assert_eq!(shown(33, &format!("0001 0002 01bb {FOO_EXAMPLE_COM}")), "1 2 443 foo.example.com");
    assert_eq!(shown(35, "0064 000a 01 75 07 4532552b736970 00 00"), "100 10 \"u\" \"E2U+sip\" \"\" .");
    assert_eq!(shown(257, "00 05 6973737565 63612e6578616d706c652e6e6574"), "0 issue \"ca.example.net\"");
    assert_eq!(shown(256, "000a 0001 6674703a2f2f61"), "10 1 \"ftp://a\"");
    assert_eq!(shown(108, "00005e0053 2a"), "00-00-5e-00-53-2a");
    assert_eq!(shown(104, "000a 00144fffff20ee64"), "10 0014:4fff:ff20:ee64");
    assert_eq!(shown(52, "03 01 01 abcd"), "3 1 1 abcd");
}

#[test]
fn locations_prefixes_and_gateways_match_their_rfcs() {
    // RFC 1876 section 4: Cambridge with explicit size, and with the default precisions of section 3; then a southern
    // and eastern location.
    let cambridge = "42 21 54.000 N 71 06 18.000 W -24.00m 30.00m 10000.00m 10.00m";
    assert_eq!(shown(29, "00 33 16 13 89172dd0 70be15f0 00988d20"), cambridge);
    assert_eq!(
        shown(29, "00 12 16 13 7fffffff 80000001 00989680"),
        "0 00 00.001 S 0 00 00.001 E 0.00m 1.00m 10000.00m 10.00m"
    );
    // RFC 3123 section 5.
    assert_eq!(shown(42, "0001 15 03 c0a820 0001 1c 83 c0a826"), "1:192.168.32.0/21 !1:192.168.38.0/28");
    assert_eq!(
        shown(42, "0001 20 04 7f000001 0002 08 01 ff 0007 08 01 ab"),
        "1:127.0.0.1/32 2:ff00::/8 7:ab/8"
    );
    // RFC 4025 section 3.2, with the key of its examples.
    let key = "01035153 7986ed35 533b6064 478eeeb2 7b5bd74d ae149b6e 81ba3a05 21af82ab 7801";
    let base64 = "AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ==";
    let cases = [
        ("01 02 c0000226".to_owned(), "1 2 192.0.2.38"),
        ("00 02".to_owned(), "0 2 ."),
        (format!("03 02 {FOO_EXAMPLE_COM}"), "3 2 foo.example.com"),
        ("02 02 20010db8 00008002 00000000 20000001".to_owned(), "2 2 2001:db8:0:8002::2000:1"),
    ];
    for (digits, gateway) in cases {
        assert_eq!(shown(45, &format!("0a {digits} {key}")), format!("10 {gateway} {base64}"));
    }
    // RFC 8005 section 6, with the key truncated to three octets.
    let identity = "10 02 0003 200100107B1A74DF365639CC39F1D578 030100";
    assert_eq!(shown(55, identity), "2 200100107b1a74df365639cc39f1d578 AwEA");
    let server = format!("{identity} {FOO_EXAMPLE_COM} {FOO_EXAMPLE_COM}");
    assert_eq!(shown(55, &server), "2 200100107b1a74df365639cc39f1d578 AwEA foo.example.com foo.example.com");
    // RFC 8777 section 4.3.1.
    assert_eq!(shown(260, "0a 81 cb00710f"), "10 1 1 203.0.113.15");
    assert_eq!(shown(260, "80 00"), "128 0 0 .");
    // RFC 1035 section 3.4.2: SMTP over TCP. RFC 1706 section 6.
    assert_eq!(shown(11, "0a000001 06 00000040"), "10.0.0.1 6 25");
    assert_eq!(shown(11, "0a000001 11"), "10.0.0.1 17");
    assert_eq!(
        shown(22, "47000580005a0000000001e133ffffff00016100"),
        "0x47000580005a0000000001e133ffffff00016100"
    );
}

#[test]
fn data_that_violates_its_type_is_shown_as_octets() {
    assert_eq!(shown(1, "0a0000"), "\\# 3 0a0000");
    assert_eq!(shown(1, "0a00000100"), "\\# 5 0a00000100");
    assert_eq!(shown(5, "c00c"), "\\# 2 c00c");
    assert_eq!(shown(16, "05 6162"), "\\# 3 056162");
    assert_eq!(shown(47, "00 0000"), "\\# 3 000000");
    assert_eq!(shown(65, "0001 00 0001 0009 02"), "\\# 8 000100000100".to_owned() + "0902");
    assert_eq!(shown(6, "00"), "\\# 1 00");
    for (record_type, digits) in [
        (29, "01 33 16 13 89172dd0 70be15f0 00988d20"),
        (29, "00 a3 16 13 89172dd0 70be15f0 00988d20"),
        (29, "00 33 16 13 ffffffff 70be15f0 00988d20"),
        (42, "0001 15 04 c0a820"),
        (45, "0a 04 02 c0000226"),
        (55, "10 02 0003 2001"),
        (260, "0a 01 cb0071"),
    ] {
        assert!(shown(record_type, digits).starts_with("\\# "), "{record_type} {digits}");
    }
}
