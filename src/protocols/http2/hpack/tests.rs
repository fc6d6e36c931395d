//! The examples of RFC 7541 appendix C, and blocks that a decoder must reject.

use super::*;

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|octet| !octet.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Decoding limits for a connection without known SETTINGS.
const LIMITS: Limits = Limits { list_len_max: 1000, table_len_max: TABLE_LEN_MAX };

fn text(list: &Block) -> String {
    let fields = list.fields();
    fields.iter().map(|field| format!("{}={}", field.name, field.value)).collect::<Vec<_>>().join(" ")
}

fn decode(decoder: &mut Decoder, block: &str) -> Result<String, HpackError> {
    let mut list = Block::default();
    decoder.decode(&unhex(block), &mut list, LIMITS).map(|()| text(&list))
}

#[test]
fn integers_match_appendix_c_1() {
    for (octets, prefix_len, expected) in
        [("0a", 5, 10), ("1f9a0a", 5, 1337), ("2a", 8, 42), ("7f00", 7, 127)]
    {
        let octets = unhex(octets);
        let mut rest = &octets[..];
        assert_eq!((integer(&mut rest, prefix_len), rest), (Ok(expected), &[][..]));
    }
    for bad in ["1f", "1f80", "1fffffffff0f", "1f8080808000"] {
        assert!(integer(&mut &unhex(bad)[..], 5).is_err(), "{bad}");
    }
}

#[test]
fn fields_match_appendix_c_2() {
    let mut decoder = Decoder::default();
    let block = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    assert_eq!(decode(&mut decoder, block).unwrap(), "custom-key=custom-header");
    assert_eq!(decoder.table.len(), 55);
    let mut decoder = Decoder::default();
    assert_eq!(decode(&mut decoder, "040c 2f73 616d 706c 652f 7061 7468").unwrap(), ":path=/sample/path");
    assert_eq!(
        decode(&mut decoder, "1008 7061 7373 776f 7264 0673 6563 7265 74").unwrap(),
        "password=secret"
    );
    assert_eq!(decoder.table.len(), 0);
    assert_eq!(decode(&mut decoder, "82").unwrap(), ":method=GET");
}

const REQUESTS: [(&str, usize); 3] = [
    (":method=GET :scheme=http :path=/ :authority=www.example.com", 57),
    (":method=GET :scheme=http :path=/ :authority=www.example.com cache-control=no-cache", 110),
    (":method=GET :scheme=https :path=/index.html :authority=www.example.com custom-key=custom-value", 164),
];

#[test]
fn requests_match_appendices_c_3_and_c_4() {
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let coded = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::default();
        for (block, (expected, table_len)) in blocks.iter().zip(REQUESTS) {
            assert_eq!(decode(&mut decoder, block).unwrap(), expected);
            assert_eq!(decoder.table.len(), table_len);
        }
    }
}

#[test]
fn responses_match_appendices_c_5_and_c_6_in_a_table_of_256_octets() {
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 \
         3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 \
         7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 \
         6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    let coded = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad \
         1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 \
         e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    let location = "location=https://www.example.com";
    let date = |second| format!("date=Mon, 21 Oct 2013 20:13:{second} GMT");
    let expected = [
        format!(":status=302 cache-control=private {} {location}", date(21)),
        format!(":status=307 cache-control=private {} {location}", date(21)),
        format!(
            ":status=200 cache-control=private {} {location} content-encoding=gzip \
             set-cookie=foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            date(22)
        ),
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::default();
        assert_eq!(decode(&mut decoder, "3fe1 01").unwrap(), "", "a size of 256");
        for ((block, expected), table_len) in blocks.iter().zip(&expected).zip([222, 222, 215]) {
            assert_eq!(decode(&mut decoder, block).unwrap(), *expected);
            assert_eq!(decoder.table.len(), table_len);
        }
    }
}

#[test]
fn invalid_blocks_are_rejected() {
    for (block, error) in [
        ("80", HpackError::Index),
        ("be", HpackError::Index),
        ("7e", HpackError::Index),
        ("7f0100", HpackError::Index),
        ("8220", HpackError::LateResize),
        ("3fe2ff03", HpackError::TableTooLong),
        ("40", HpackError::Truncated),
        ("400561", HpackError::Truncated),
        ("4001618180", HpackError::Huffman),
        ("ffffffffffff", HpackError::Integer),
    ] {
        assert_eq!(decode(&mut Decoder::default(), block), Err(error), "{block}");
    }
}

#[test]
fn a_list_ends_at_its_maximum_length() {
    // `:method: GET` has ten octets by its index, and `ab: cdef` as a literal has six; a literal with the name of index
    // 31 has the twelve of `content-type`, although the index is short.
    let (get, literal, named) = ("82", "000261620463646566", "5f00");
    for (block, len_max, expected_count) in [
        (get.repeat(3), 30, None),
        (get.repeat(3), 29, Some(2)),
        (get.repeat(2) + literal, 26, None),
        (get.repeat(2) + literal, 25, Some(2)),
        (named.to_owned(), 12, None),
        (named.to_owned(), 11, Some(0)),
    ] {
        let mut list = Block::default();
        let limits = Limits { list_len_max: len_max, ..LIMITS };
        let outcome = Decoder::default().decode(&unhex(&block), &mut list, limits);
        match expected_count {
            None => assert_eq!(outcome, Ok(()), "{block} {len_max}"),
            Some(count) => {
                assert_eq!((outcome, list.fields().len()), (Err(HpackError::ListTooLong), count), "{block}");
            }
        }
        assert_eq!(list.is_truncated, expected_count.is_some());
        assert!(list.len() <= len_max);
    }
}

#[test]
fn the_table_size_is_limited_by_settings() {
    let limits = Limits { table_len_max: TABLE_LEN_DEFAULT, ..LIMITS };
    // A size of 4096 is encoded as the prefix 31 and the remainder 4065.
    for (block, expected) in [("3fe11f", Ok(())), ("3fe21f", Err(HpackError::TableTooLong))] {
        let outcome = Decoder::default().decode(&unhex(block), &mut Block::default(), limits);
        assert_eq!(outcome, expected, "{block}");
    }
}
