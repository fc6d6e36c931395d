//! Files that commands write.
//!
//! A file is written under another name in the same folder and moved to its own when it is whole, so that what was there stays
//! until then, and nobody finds half of a file. A symbolic link is replaced, never followed; an input is never replaced.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

use crate::console::Failure;
use crate::input::is_stdin;

/// The longest file name that is a part of its temporary one: file systems take 255 octets.
const NAME_LEN_MAX: usize = 200;

/// Which file a path leads to, whatever it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] PathBuf);

impl Identity {
    #[cfg(unix)]
    fn new(_: &Path, metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        Some(Self((metadata.dev(), metadata.ino())))
    }

    #[cfg(not(unix))]
    fn new(path: &Path, _: &Metadata) -> Option<Self> {
        fs::canonicalize(path).ok().map(Self)
    }

    fn of(path: &Path) -> Option<Self> {
        Self::new(path, &fs::metadata(path).ok()?)
    }
}

/// What a command may write to.
#[derive(Debug)]
pub(crate) struct Outputs {
    inputs: Vec<Identity>,
    may_overwrite: bool,
}

impl Outputs {
    /// Anything but the inputs, and only new files unless others may be overwritten.
    pub(crate) fn new(inputs: &[PathBuf], may_overwrite: bool) -> Self {
        // Standard input may be a file, too.
        let path =
            |input: &PathBuf| if is_stdin(input) { PathBuf::from("/dev/stdin") } else { input.clone() };
        Self { inputs: inputs.iter().filter_map(|input| Identity::of(&path(input))).collect(), may_overwrite }
    }

    /// Where a file is to be written, unless it must not be.
    pub(crate) fn place(&self, path: &Path) -> Result<Place, Failure> {
        let refusal = |why: &str| Failure::Other(format!("{}: {why}", path.display()));
        match fs::symlink_metadata(path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(self.place_again(path)),
            Err(error) => return Err(Failure::writing(path.display(), &error)),
        }
        // A link that leads nowhere has no target.
        if let Ok(target) = fs::metadata(path) {
            if target.is_dir() {
                return Err(refusal("is a directory"));
            }
            if Identity::new(path, &target).is_some_and(|identity| self.inputs.contains(&identity)) {
                return Err(refusal("is an input, and cannot be an output too"));
            }
        }
        let place = self.place_again(path);
        if place.is_in_place || self.may_overwrite {
            Ok(place)
        } else {
            Err(refusal("exists; --force overwrites it"))
        }
    }

    /// Where a file is being written that was made before.
    pub(crate) fn place_again(&self, path: &Path) -> Place {
        // A pipe or a device holds nothing that could be lost.
        let is_special = |target: Metadata| !target.is_file() && !target.is_dir();
        let replaced = fs::symlink_metadata(path).ok().filter(Metadata::is_file);
        Place {
            path: path.to_owned(),
            is_in_place: fs::metadata(path).is_ok_and(is_special),
            may_overwrite: self.may_overwrite,
            permissions: replaced.map(|replaced| replaced.permissions()),
        }
    }
}

/// Where a file is written.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// It is a pipe or a device.
    is_in_place: bool,
    may_overwrite: bool,
    /// Those of the regular file that is there.
    permissions: Option<Permissions>,
}

impl Place {
    /// Opens the file, empty, under its temporary name.
    pub(crate) fn create(&self) -> Result<File, Failure> {
        let create = || {
            if self.is_in_place {
                let file = OpenOptions::new().write(true).open(&self.path)?;
                let is_still_special = !file.metadata()?.is_file();
                return if is_still_special { Ok(file) } else { Err(io::ErrorKind::AlreadyExists.into()) };
            }
            let temporary = temporary(&self.path);
            let file = OpenOptions::new().write(true).create_new(true).open(&temporary);
            match file {
                // Another program of the same number left it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    fs::remove_file(&temporary)?;
                    OpenOptions::new().write(true).create_new(true).open(&temporary)
                }
                file => file,
            }
        };
        create().map_err(|error| self.failure(&error))
    }

    /// Opens the file again to write more to it.
    pub(crate) fn reopen(&self) -> Result<File, Failure> {
        let path = if self.is_in_place { self.path.clone() } else { temporary(&self.path) };
        let reopen = || {
            let is_link = fs::symlink_metadata(&path)?.is_symlink();
            if is_link && !self.is_in_place {
                return Err(io::Error::other("a symbolic link took the place of the temporary file"));
            }
            OpenOptions::new().write(true).open(&path)
        };
        reopen().map_err(|error| self.failure(&error))
    }

    /// Moves the file, which is whole, to its own name.
    pub(crate) fn commit(&self) -> Result<(), Failure> {
        if self.is_in_place {
            return Ok(());
        }
        let temporary = temporary(&self.path);
        let commit = || {
            if let Some(permissions) = &self.permissions {
                fs::set_permissions(&temporary, permissions.clone())?;
            }
            if self.may_overwrite {
                return fs::rename(&temporary, &self.path);
            }
            // To rename would overwrite what came meanwhile.
            match fs::hard_link(&temporary, &self.path) {
                Ok(()) => fs::remove_file(&temporary),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                // Not every file system has links.
                Err(_) if fs::symlink_metadata(&self.path).is_ok() => {
                    Err(io::ErrorKind::AlreadyExists.into())
                }
                Err(_) => fs::rename(&temporary, &self.path),
            }
        };
        commit().map_err(|error| {
            self.discard();
            self.failure(&error)
        })
    }

    /// Removes the file under its temporary name.
    pub(crate) fn discard(&self) {
        if !self.is_in_place {
            // If it cannot be removed, there is nothing more to do about it.
            let _ = fs::remove_file(temporary(&self.path));
        }
    }

    /// What went wrong with it.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::Other(format!("{}: exists; --force overwrites it", self.path.display()))
            }
            _ => Failure::writing(self.path.display(), error),
        }
    }
}

/// A name in the same folder that is hidden, and no other program's.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    let mut temporary = OsString::from(".");
    if name.len() <= NAME_LEN_MAX {
        temporary.push(name);
    } else {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        temporary.push(format!("{:016x}", hasher.finish()));
    }
    temporary.push(format!(".{}.part", std::process::id()));
    path.with_file_name(temporary)
}

/// A file that is written from its beginning to its end, and gone if it is not brought to an end.
#[derive(Debug)]
pub(crate) struct OutputFile {
    place: Place,
    is_done: bool,
}

impl OutputFile {
    /// Makes the file, empty.
    pub(crate) fn create(place: Place) -> Result<(Self, File), Failure> {
        let file = place.create()?;
        Ok((Self { place, is_done: false }, file))
    }

    /// Moves the file to its name.
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        self.is_done = true;
        self.place.commit()
    }

    /// What went wrong with it.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        self.place.failure(error)
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if !self.is_done {
            self.place.discard();
        }
    }
}

/// Writes a file of which all octets are there.
pub(crate) fn write_whole(place: Place, octets: &[u8]) -> Result<(), Failure> {
    use io::Write as _;
    let (output, mut file) = OutputFile::create(place)?;
    file.write_all(octets).map_err(|error| output.failure(&error))?;
    output.commit()
}
