//! Work per octet: what inputs made to be expensive cost, beside the benign input of the same parser or layer.

use crate::figures::Run;

/// How many times the instructions of its benign row a row may take.
pub const FACTOR_MAX: u64 = 8;

/// What the ids of these rows begin with; the parser or layer follows, then the input.
const PREFIX: &str = "work/";

/// The input of a parser or layer that others are compared with.
const BENIGN: &str = "benign";

/// A row that may take more than [`FACTOR_MAX`].
#[derive(Clone, Copy, Debug)]
pub struct Exemption {
    /// Its id.
    pub id: &'static str,
    /// How many times the instructions of its benign row it may take.
    pub factor_max: u64,
    /// Why that is so, and what caps it.
    pub reason: &'static str,
}

/// All rows that may.
pub const EXEMPTIONS: &[Exemption] = &[
    Exemption {
        id: "work/http2/repeated_paths",
        factor_max: 20,
        reason: "nearly all of it writes JSON; texts are capped by http2::TEXT_CREDIT and TEXT_FACTOR",
    },
    Exemption {
        id: "work/pcapng/interfaces",
        factor_max: 40,
        reason: "each is found or added by its hash among those of all files; capped by Limits::interface_count_max",
    },
    Exemption {
        id: "work/pcapng/named_interfaces",
        factor_max: 20,
        reason: "names that are no UTF-8 are made so, 255 octets each; capped by Limits::interface_count_max",
    },
    Exemption {
        id: "work/reassembler/overlaps",
        factor_max: 40,
        reason: "each octet of a segment is compared with a piece of its own; capped by Limits::stream_side_segment_count_max",
    },
    Exemption { id: "work/reassembler/shrinking_overlaps", factor_max: 40, reason: "likewise" },
];

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It takes more instructions than it may.
    TooExpensive,
    /// Its parser or layer has no benign row.
    NoBenign,
    /// Its parser or layer has no other row than the benign one.
    NoOther,
    /// It is exempted, and need not be.
    NeedlessExemption,
    /// It is exempted, and was not run.
    Gone,
}

/// A row beside its benign one.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkRow {
    /// Its id.
    pub id: String,
    /// How many times the instructions of the benign row it takes; none without both.
    pub factor: Option<f64>,
    /// How many times it may take.
    pub factor_max: u64,
    /// Why it may take more than others.
    pub reason: Option<&'static str>,
    /// What is wrong with it.
    pub fault: Option<Fault>,
}

/// The rows of a run that are about work per octet.
///
/// All inputs have the same number of octets, which the benches assert. A ratio within one run depends little on the compiler,
/// so that a fault is one in any environment.
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
            fault: Some(Fault::Gone),
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
    fn eight_times_pass_and_one_instruction_more_fails() {
        let benign = ("work/a/benign", 100);
        assert_eq!(faults(&[("work/a/b", 800), benign, ("x/a/b", 9000)], &[]), [None, None]);
        assert_eq!(faults(&[("work/a/b", 801), benign], &[]), [Some(Fault::TooExpensive), None]);
    }

    #[test]
    fn an_exemption_has_a_limit_too_and_must_be_needed() {
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
        assert_eq!(faults(&[("work/a/c", 1), benign], &[EXEMPT]), [None, None, Some(Fault::Gone)]);
    }

    #[test]
    fn a_row_alone_is_compared_with_nothing() {
        assert_eq!(faults(&[("work/a/b", 1)], &[]), [Some(Fault::NoBenign)]);
        assert_eq!(
            faults(&[("work/a/benign", 1), ("work/b/c", 1)], &[]),
            [Some(Fault::NoOther), Some(Fault::NoBenign)]
        );
    }
}
