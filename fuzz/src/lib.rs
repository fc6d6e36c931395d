//! The bodies of the fuzz targets, and what writes their seeds. See `docs/fuzzing.md`.

pub mod differential;
pub mod seeds;
pub mod targets;

/// All targets.
pub fn all() -> impl Iterator<Item = &'static targets::Target> {
    targets::ALL.iter().chain(differential::ALL)
}

/// Runs a target by its name.
///
/// # Panics
///
/// If there is no target of that name, or the target finds a mistake.
pub fn run(name: &str, data: &[u8]) {
    let (_, body) = all().find(|(known, _)| *known == name).expect("a target of that name");
    body(data);
}
