//! Seeds of targets, and their files.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// Seeds by the name of their target.
#[derive(Debug, Default)]
pub struct Seeds(BTreeMap<&'static str, Vec<Vec<u8>>>);

impl Seeds {
    pub(super) fn add(&mut self, target: &'static str, seed: Vec<u8>) {
        self.0.entry(target).or_default().push(seed);
    }

    pub(super) fn add_all(&mut self, targets: &[&'static str], seed: &[u8]) {
        for target in targets {
            self.add(target, seed.to_vec());
        }
    }

    /// Returns the seeds of a target.
    pub fn of(&self, target: &str) -> impl Iterator<Item = &[u8]> {
        self.0.get(target).into_iter().flatten().map(Vec::as_slice)
    }

    /// Returns each target with the number of its seeds.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.0.iter().map(|(target, seeds)| (*target, seeds.len()))
    }

    /// Writes each seed to a separate file in the folder of its target.
    ///
    /// # Errors
    ///
    /// If a folder or file cannot be written.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        for (target, seeds) in &self.0 {
            let folder = root.join(target);
            fs::create_dir_all(&folder)?;
            for (number, seed) in seeds.iter().enumerate() {
                fs::write(folder.join(format!("seed-{number:04}")), seed)?;
            }
        }
        Ok(())
    }
}
