//! All targets over their regressions and generated seeds.

use std::path::Path;
use std::{fs, io};

use flowgauge_fuzz::{all, seeds};

#[test]
fn regressions_pass() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    for entry in fs::read_dir(root)? {
        let folder = entry?.path();
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let (_, body) = all().find(|(known, _)| *known == name).expect("a folder of a target");
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            println!("{}", path.display());
            body(&fs::read(path)?);
        }
    }
    Ok(())
}

#[test]
fn seeds_pass_and_reach_all_targets() -> io::Result<()> {
    let seeds = seeds::make(&seeds::captures())?;
    for (name, body) in all() {
        let mut count = 0;
        for seed in seeds.of(name) {
            body(seed);
            count += 1;
        }
        assert!(count > 0, "{name} has no seeds");
    }
    Ok(())
}
