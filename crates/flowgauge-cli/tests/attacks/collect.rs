//! Exporters of flow records.

use super::run;

/// Returns an IPFIX message of an observation domain.
pub(crate) fn message(domain: u32, sets: &[u8]) -> Vec<u8> {
    let len = u16::try_from(16 + sets.len()).expect("a message");
    let mut message = [10_u16.to_be_bytes(), len.to_be_bytes()].concat();
    for word in [1_700_000_000, 0, domain] {
        message.extend(word.to_be_bytes());
    }
    message.extend_from_slice(sets);
    message
}

/// Returns a set of records.
pub(crate) fn data(id: u16, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(4 + body.len()).expect("a set");
    [&id.to_be_bytes()[..], &len.to_be_bytes(), body].concat()
}

/// Returns the definition of a template.
fn definition(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let count = fields.len() as u16;
    let head = [id, count].into_iter();
    head.chain(fields.iter().flat_map(|(element, len)| [*element, *len])).flat_map(u16::to_be_bytes).collect()
}

/// Returns a set with a template.
pub(crate) fn template(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    data(2, &definition(id, fields))
}

pub(crate) const FLOW: [(u16, u16); 5] = [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1)];
pub(crate) const RECORD: [u8; 13] = [10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 1, 187, 6];

/// Definitions of many templates of one element, in messages.
fn many_templates(domain: u32, count: u16) -> Vec<u8> {
    let ids: Vec<u16> = (256..256 + count).collect();
    let messages = ids.chunks(8000).map(|ids| {
        let definitions: Vec<u8> = ids.iter().flat_map(|id| definition(*id, &[(8, 4)])).collect();
        message(domain, &data(2, &definitions))
    });
    messages.flatten().collect()
}

/// A record after the attack, which must still be written.
fn last(domain: u32) -> Vec<u8> {
    message(domain, &[template(300, &FLOW), data(300, &RECORD)].concat())
}

/// The work of these attacks is measured by the rows `work/collector`.
#[test]
fn exporters_cannot_exceed_the_memory_of_a_collector_nor_stop_its_records() {
    let withdrawals = [0, 3, 0, 0].repeat(16_000);
    let mut storm = many_templates(1, 15_000);
    (0..20).for_each(|_| storm.extend(message(1, &data(3, &withdrawals))));
    storm.extend(last(1));

    // 100 domains, each with 15,000 templates that are withdrawn at the end.
    let mut tables = Vec::new();
    for domain in 1..=100 {
        tables.extend(many_templates(domain, 15_000));
        tables.extend(message(domain, &data(2, &[0, 2, 0, 0])));
        tables.extend(last(domain));
    }

    // Type records that define an element again before each record of a template with 16,000 fields.
    let mut definitions = Vec::new();
    let long: Vec<_> = std::iter::once((8, 4)).chain(std::iter::repeat_n((999, 0), 16_000)).collect();
    (0..8).for_each(|at| definitions.extend(message(1, &template(256 + at, &long))));
    let options = [999_u16, 3, 0, 346, 4, 303, 2, 341, 65_535]
        .into_iter()
        .flat_map(u16::to_be_bytes)
        .collect::<Vec<_>>();
    definitions.extend(message(1, &data(3, &options)));
    for at in 0..400_u16 {
        let mut named = 32_473_u32.to_be_bytes().to_vec();
        named.extend((1 + at % 2).to_be_bytes());
        named.extend(b"\x0bcommunityId");
        let records: Vec<u8> = (0..8).flat_map(|id| data(256 + id, &[1, 2, 3, 4])).collect();
        definitions.extend(message(1, &[data(999, &named), records].concat()));
    }
    definitions.extend(last(1));

    for (what, messages, count) in
        [("storm", storm, 1), ("tables", tables, 100), ("definitions", definitions, 1)]
    {
        let (out, err, peak) = run(&["collect", "--format", "ndjson", "input"], &messages);
        let records = String::from_utf8(out).unwrap().matches("\"destination_port\":443").count();
        assert_eq!(records, count, "{what}: {err}");
        assert!(peak < 64, "{what}: {peak} MiB");
    }
}
