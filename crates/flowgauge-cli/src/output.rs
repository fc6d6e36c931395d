//! Output files of commands.
//!
//! A file is written under a temporary name in the same folder and renamed when it is complete, so that an existing
//! file remains until then, and no partial file becomes visible. A symbolic link is replaced, never followed; an input
//! is never replaced.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, Permissions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::console::Failure;
use crate::creation::{self, Access, InputFiles};

/// Maximum length in octets of a file name that is included unchanged in the name of its temporary file: file systems
/// permit 255 octets.
const NAME_LEN_MAX: usize = 200;

/// What happens to a file that exists at the path of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Existing {
    /// It is replaced.
    Replaced,
    /// It is kept, and the output refused; a pipe or a device is written.
    Kept,
    /// It is kept, and the output refused, even if it is a pipe or a device: traffic determines the names of outputs.
    Untouched,
}

impl Existing {
    /// Returns the refusal of an output whose file exists.
    const fn refusal(self) -> &'static str {
        match self {
            Self::Replaced | Self::Kept => "already exists; use --force to overwrite it",
            Self::Untouched => "already exists and is not overwritten; use another folder",
        }
    }
}

/// The output files that a command may create or replace.
#[derive(Debug)]
pub(crate) struct Outputs {
    inputs: InputFiles,
    existing: Existing,
    /// Files that were claimed.
    claimed: Mutex<BTreeSet<PathBuf>>,
}

impl Outputs {
    /// Permits all output files except the inputs of the command, and only new files unless overwriting is permitted.
    pub(crate) fn new(inputs: &[PathBuf], may_overwrite: bool) -> Self {
        let existing = if may_overwrite { Existing::Replaced } else { Existing::Kept };
        Self { inputs: InputFiles::new(inputs), existing, claimed: Mutex::default() }
    }

    /// Permits only files that do not exist, not even as a pipe or a device. `inputs` are those of the command.
    pub(crate) fn only_new(inputs: &[PathBuf]) -> Self {
        Self { inputs: InputFiles::new(inputs), existing: Existing::Untouched, claimed: Mutex::default() }
    }

    /// Returns the location for one of several output files; a failure also if another one is or was there.
    pub(crate) fn claim(&self, path: &Path) -> Result<Location, Failure> {
        let location = self.location(path)?;
        // The folder exists, the file does not.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let file = folder.join(path.file_name().unwrap_or_default());
        let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        if location.is_in_place || claimed.insert(file) {
            Ok(location)
        } else {
            Err(Failure::Other(format!("{}: two outputs have the same path", path.display())))
        }
    }

    /// Returns the location for an output file; a failure if the file must not be written.
    pub(crate) fn location(&self, path: &Path) -> Result<Location, Failure> {
        let refusal = |why: &str| Failure::Other(format!("{}: {why}", path.display()));
        match fs::symlink_metadata(path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(self.checked_location(path)),
            Err(error) => return Err(Failure::writing(path.display(), &error)),
        }
        // A dangling link has no target.
        if let Ok(target) = fs::metadata(path) {
            if target.is_dir() {
                return Err(refusal("is a directory"));
            }
            if self.inputs.contains(path, &target) {
                return Err(refusal("is an input and cannot also be an output"));
            }
        }
        let location = self.checked_location(path);
        if location.is_in_place || self.existing == Existing::Replaced {
            Ok(location)
        } else {
            Err(refusal(self.existing.refusal()))
        }
    }

    /// Returns the location of an output file whose creation was checked before.
    pub(crate) fn checked_location(&self, path: &Path) -> Location {
        // A pipe or a device contains nothing that could be lost.
        let is_special = |target: Metadata| !target.is_file() && !target.is_dir();
        let replaced = fs::symlink_metadata(path).ok().filter(Metadata::is_file);
        Location {
            path: path.to_owned(),
            is_in_place: self.existing != Existing::Untouched && fs::metadata(path).is_ok_and(is_special),
            existing: self.existing,
            inputs: self.inputs.clone(),
            permissions: replaced.map(|replaced| replaced.permissions()),
        }
    }
}

/// Location of an output file, which may exist already.
#[derive(Debug)]
pub(crate) struct Location {
    path: PathBuf,
    /// True for a pipe or a device, which is written directly, without a temporary file.
    is_in_place: bool,
    existing: Existing,
    inputs: InputFiles,
    /// Permissions of the existing regular file that the output replaces.
    permissions: Option<Permissions>,
}

impl Location {
    /// Creates the output file under its temporary name and opens it; opens a pipe or a device directly.
    pub(crate) fn create(&self) -> Result<File, Failure> {
        let created = if self.is_in_place {
            creation::open_in_place(&self.path)
        } else {
            creation::create_temporary(&temporary(&self.path), &self.inputs, &self.access())
        };
        created.map_err(|error| self.failure(&error))
    }

    /// Creates the output file under its final name, for a file that others read while it is written.
    pub(crate) fn create_visible(&self) -> Result<File, Failure> {
        let created = if self.is_in_place {
            creation::open_in_place(&self.path)
        } else if self.existing == Existing::Replaced {
            creation::create_temporary(&self.path, &self.inputs, &self.access())
        } else {
            creation::create(&self.path, &Access::Default)
        };
        created.map_err(|error| self.failure(&error))
    }

    /// Returns the access to the output file while it is written: not more than to the file that it replaces.
    fn access(&self) -> Access {
        self.permissions.clone().map_or(Access::Default, Access::Like)
    }

    /// Opens the output file, which was created before, again to continue writing.
    pub(crate) fn reopen(&self) -> Result<File, Failure> {
        let reopened = if self.is_in_place {
            creation::open_in_place(&self.path)
        } else {
            creation::open_again(&temporary(&self.path), true)
        };
        reopened.map_err(|error| self.failure(&error))
    }

    /// Opens the temporary file, which was created before and is complete, to read it.
    pub(crate) fn open(&self) -> Result<File, Failure> {
        creation::open_again(&temporary(&self.path), false).map_err(|error| self.failure(&error))
    }

    /// Turns the temporary file of this output into that of another one in the same folder.
    pub(crate) fn become_that(&self, other: &Self) -> Result<(), Failure> {
        let other_temporary = temporary(&other.path);
        let renamed = creation::vacate(&other_temporary, &other.inputs)
            .and_then(|()| fs::rename(temporary(&self.path), other_temporary));
        renamed.map_err(|error| other.failure(&error))
    }

    /// Renames the complete temporary file to the final name of the output.
    pub(crate) fn commit(&self) -> Result<(), Failure> {
        if self.is_in_place {
            return Ok(());
        }
        let temporary = temporary(&self.path);
        let commit = || {
            if let Some(permissions) = &self.permissions {
                creation::set_permissions(&temporary, permissions)?;
            }
            if self.existing == Existing::Replaced {
                return fs::rename(&temporary, &self.path);
            }
            // A rename would overwrite a file created in the meantime.
            match fs::hard_link(&temporary, &self.path) {
                Ok(()) => fs::remove_file(&temporary),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                // Not every file system supports links.
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

    /// Removes the temporary file to which the output was written; a pipe or a device remains.
    pub(crate) fn discard(&self) {
        if !self.is_in_place {
            // A failure to remove the file is ignored.
            let _ = fs::remove_file(temporary(&self.path));
        }
    }

    /// Returns the failure for an I/O error of this output file.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::Other(format!("{}: {}", self.path.display(), self.existing.refusal()))
            }
            _ => Failure::writing(self.path.display(), error),
        }
    }
}

/// Returns the name of the temporary file for an output: a hidden name in the same folder with the number of the process.
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

/// An output file that is written sequentially, and removed unless it is committed.
#[derive(Debug)]
pub(crate) struct OutputFile {
    location: Location,
    is_done: bool,
}

impl OutputFile {
    /// Creates an empty output file under its temporary name and opens it.
    pub(crate) fn create(location: Location) -> Result<(Self, File), Failure> {
        let file = location.create()?;
        Ok((Self { location, is_done: false }, file))
    }

    /// Returns whether the file replaces another one.
    pub(crate) const fn replaces(&self) -> bool {
        self.location.permissions.is_some()
    }

    /// Renames the complete file to its final name.
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        self.is_done = true;
        self.location.commit()
    }

    /// Returns the failure for an I/O error of this output file.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        self.location.failure(error)
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if !self.is_done {
            self.location.discard();
        }
    }
}

/// Writes an output file whose content is complete in memory.
pub(crate) fn write_whole(location: Location, octets: &[u8]) -> Result<(), Failure> {
    use io::Write as _;
    let (output, mut file) = OutputFile::create(location)?;
    file.write_all(octets).map_err(|error| output.failure(&error))?;
    output.commit()
}
