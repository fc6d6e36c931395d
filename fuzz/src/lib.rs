//! Bodies of the fuzz targets, and the generation of their seeds. See `docs/fuzzing.md`.

pub mod bus;
pub mod differential;
pub mod seeds;
pub mod targets;

/// Returns all targets.
pub fn all() -> impl Iterator<Item = &'static targets::Target> {
    targets::ALL.iter().chain(bus::ALL).chain(differential::ALL)
}

/// Runs the target with a given name.
///
/// # Panics
///
/// If there is no target with that name, or the target finds an error.
pub fn run(name: &str, data: &[u8]) {
    let (_, body) = all().find(|(known, _)| *known == name).expect("no target with that name");
    body(data);
}
