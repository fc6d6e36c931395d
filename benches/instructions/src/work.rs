//! Work per octet: cost of expensive inputs relative to the benign input of the same parser or layer.

use crate::figures::Run;

/// Maximum ratio of the instructions of a row to those of its benign row.
pub const FACTOR_MAX: u64 = 8;

/// Prefix of the ids of these rows. The parser or layer and the input follow.
const PREFIX: &str = "work/";

/// Name of the input that the other inputs of a parser or layer are compared with.
const BENIGN: &str = "benign";

/// A row that may exceed [`FACTOR_MAX`].
#[derive(Clone, Copy, Debug)]
pub struct Exemption {
    /// Id of the row.
    pub id: &'static str,
    /// Maximum ratio to the instructions of the benign row.
    pub factor_max: u64,
    /// Reason for the exemption, and the limit that bounds the ratio.
    pub reason: &'static str,
}

/// All exemptions.
pub const EXEMPTIONS: &[Exemption] = &[
    Exemption {
        id: "work/pcapng/interfaces",
        factor_max: 40,
        reason: "each interface is looked up by hash among those of all files; limited by Limits::interface_count_max",
    },
    Exemption {
        id: "work/pcapng/named_interfaces",
        factor_max: 20,
        reason: "invalid UTF-8 in names of 255 octets is replaced; limited by Limits::interface_count_max",
    },
    Exemption {
        id: "work/reassembler/overlaps",
        factor_max: 40,
        reason: "each octet of a segment is compared with another piece; limited by Limits::stream_side_segment_count_max",
    },
    Exemption {
        id: "work/reassembler/shrinking_overlaps",
        factor_max: 40,
        reason: "same as work/reassembler/overlaps",
    },
];

/// Fault of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The row exceeds its maximum ratio.
    TooExpensive,
    /// The parser or layer has no benign row.
    NoBenign,
    /// The parser or layer has only the benign row.
    NoOther,
    /// The row is exempted, but does not exceed [`FACTOR_MAX`].
    NeedlessExemption,
    /// The row is exempted, but was not run.
    Missing,
}

/// A row compared with its benign row.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkRow {
    /// Id of the row.
    pub id: String,
    /// Ratio to the instructions of the benign row; `None` if one of them is missing.
    pub factor: Option<f64>,
    /// Maximum ratio.
    pub factor_max: u64,
    /// Reason of the exemption, if any.
    pub reason: Option<&'static str>,
    /// Fault of the row, if any.
    pub fault: Option<Fault>,
}

/// Returns the rows of a run about work per octet.
///
/// The benches assert that all inputs have the same number of octets. A ratio within one run depends little on the
/// compiler, so that a fault is independent of the environment.
#[must_use]
pub fn work_rows(run: &Run, exemptions: &[Exemption]) -> Vec<WorkRow> {
    let is_work = |id: &&String| id.starts_with(PREFIX);
    let mut rows: Vec<_> = run.benches.keys().filter(is_work).map(|id| row(run, id, exemptions)).collect();
    rows.extend(exemptions.iter().filter(|exemption| !run.benches.contains_key(exemption.id)).map(
        |exemption| WorkRow {
            id: exemption.id.to_owned(),
            factor: None,
            factor_max: exemption.factor_max,
            reason: Some(exemption.reason),
            fault: Some(Fault::Missing),
        },
    ));
    rows
}

fn row(run: &Run, id: &str, exemptions: &[Exemption]) -> WorkRow {
    let (subject, input) = id.rsplit_once('/').unwrap_or((id, ""));
    let exemption = exemptions.iter().find(|exemption| exemption.id == id);
    let factor_max = exemption.map_or(FACTOR_MAX, |exemption| exemption.factor_max);
    let instructions = |id: &str| run.benches.get(id).map(|figures| figures.instructions);
    let pair = instructions(id).zip(instructions(&format!("{subject}/{BENIGN}")));
    let is_above = |factor: u64| pair.is_some_and(|(own, benign)| own > benign.saturating_mul(factor));
    let others =
        run.benches.keys().filter(|other| other.rsplit_once('/').is_some_and(|(it, _)| it == subject));
    let fault = match () {
        () if pair.is_none() => Some(Fault::NoBenign),
        () if input == BENIGN && others.count() == 1 => Some(Fault::NoOther),
        () if is_above(factor_max) => Some(Fault::TooExpensive),
        () if exemption.is_some() && !is_above(FACTOR_MAX) => Some(Fault::NeedlessExemption),
        () => None,
    };
    let factor = pair.map(|(own, benign)| own as f64 / benign.max(1) as f64);
    WorkRow {
        id: id.to_owned(),
        factor,
        factor_max,
        reason: exemption.map(|exemption| exemption.reason),
        fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    fn faults(benches: &[(&str, u64)], exemptions: &[Exemption]) -> Vec<Option<Fault>> {
        let mut run = Run::default();
        for (id, instructions) in benches {
            run.benches.insert((*id).into(), Figures { instructions: *instructions, allocations: 0 });
        }
        work_rows(&run, exemptions).into_iter().map(|row| row.fault).collect()
    }

    const EXEMPT: Exemption = Exemption { id: "work/a/b", factor_max: 20, reason: "a test" };

    #[test]
    fn eight_times_the_instructions_pass_and_one_instruction_beyond_fails() {
        let benign = ("work/a/benign", 100);
        assert_eq!(faults(&[("work/a/b", 800), benign, ("x/a/b", 9000)], &[]), [None, None]);
        assert_eq!(faults(&[("work/a/b", 801), benign], &[]), [Some(Fault::TooExpensive), None]);
    }

    #[test]
    fn an_exemption_has_a_limit_and_must_be_necessary() {
        let benign = ("work/a/benign", 100);
        for (instructions, fault) in [
            (2000, None),
            (2001, Some(Fault::TooExpensive)),
            (801, None),
            (800, Some(Fault::NeedlessExemption)),
        ] {
            assert_eq!(
                faults(&[("work/a/b", instructions), benign], &[EXEMPT]),
                [fault, None],
                "{instructions}"
            );
        }
        assert_eq!(faults(&[("work/a/c", 1), benign], &[EXEMPT]), [None, None, Some(Fault::Missing)]);
    }

    #[test]
    fn a_row_without_a_counterpart_fails() {
        assert_eq!(faults(&[("work/a/b", 1)], &[]), [Some(Fault::NoBenign)]);
        assert_eq!(
            faults(&[("work/a/benign", 1), ("work/b/c", 1)], &[]),
            [Some(Fault::NoOther), Some(Fault::NoBenign)]
        );
    }
}
