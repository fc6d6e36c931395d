//! Creation of all files of the command.
//!
//! Others may write to the folder of a file, and plant a link or a pipe under a name that the command uses. A file is
//! therefore created exclusively, with its permissions before its content; a file that exists under a temporary name is
//! removed first, unless it is an input; and a file that is opened again is neither a link nor a pipe.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(unix)]
use std::{thread::sleep, time::Duration};

use crate::input::is_stdin;

/// Permissions of files that only their owner may read.
const PRIVATE: u32 = 0o600;

/// Time between two attempts to open a pipe that nobody reads.
#[cfg(unix)]
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(20);

/// Identity of the file that a path refers to, regardless of its name: device and inode number on Unix, otherwise the
/// path.
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
}

/// The inputs of a command, which are never written or removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputFiles(Arc<[Identity]>);

impl InputFiles {
    pub(crate) fn new(paths: &[PathBuf]) -> Self {
        // Standard input may be a file too.
        let path =
            |input: &PathBuf| if is_stdin(input) { PathBuf::from("/dev/stdin") } else { input.clone() };
        let identity = |path: PathBuf| Identity::new(&path, &fs::metadata(&path).ok()?);
        Self(paths.iter().map(path).filter_map(identity).collect())
    }

    /// Returns whether a file with this path and metadata is an input.
    pub(crate) fn contains(&self, path: &Path, metadata: &Metadata) -> bool {
        Identity::new(path, metadata).is_some_and(|identity| self.0.contains(&identity))
    }
}

/// Access to a new file.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// As the system chooses for new files.
    Default,
    /// Only the owner may read and write.
    Private,
    /// That of another file, and the owner may read and write.
    Like(Permissions),
}

/// Creates a file that does not exist, not even as a link.
pub(crate) fn create(path: &Path, access: &Access) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if !matches!(access, Access::Default) {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, PRIVATE);
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    if let Access::Like(permissions) = access {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(Permissions::from_mode(permissions.mode() | PRIVATE))?;
    }
    Ok(file)
}

/// Creates a file under a temporary name. A file, link or pipe of this name, as another process may have left or planted it,
/// is removed; an input is not.
pub(crate) fn create_temporary(path: &Path, inputs: &InputFiles, access: &Access) -> io::Result<File> {
    vacate(path, inputs)?;
    create(path, access)
}

/// Removes the file, link or pipe with a name that the command is about to use.
pub(crate) fn vacate(path: &Path, inputs: &InputFiles) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if inputs.contains(path, &metadata) => {
            Err(io::Error::other(format!("{} is an input and cannot also be an output", path.display())))
        }
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens a file that the command has created: no link, and nothing else than a file with a single name.
pub(crate) fn open_again(path: &Path, is_written: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(!is_written).write(is_written);
    own(path, options)
}

/// Opens a file that is locked, and creates it if it does not exist. Its content is not changed.
pub(crate) fn open_lock(path: &Path, inputs: &InputFiles) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, PRIVATE);
    let file = own(path, options)?;
    if inputs.contains(path, &file.metadata()?) {
        return Err(io::Error::other("is an input and cannot also be a lock"));
    }
    Ok(file)
}

/// Opens a regular file without following a link, and without waiting.
fn own(path: &Path, mut options: OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let link = || io::Error::other("was replaced by a link, a pipe or a device; remove it");
    let file = options.open(path).map_err(|error| match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => link(),
        _ => error,
    })?;
    let metadata = file.metadata()?;
    #[cfg(unix)]
    let has_one_name = std::os::unix::fs::MetadataExt::nlink(&metadata) == 1;
    #[cfg(not(unix))]
    let has_one_name = true;
    if metadata.is_file() && has_one_name { Ok(file) } else { Err(link()) }
}

/// Opens a pipe or device to write it. Waits for the reader of a pipe until a signal arrives.
pub(crate) fn open_in_place(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    let file = open_pipe(path, &mut options)?;
    if file.metadata()?.is_file() { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok(file) }
}

#[cfg(unix)]
fn open_pipe(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};

    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    if !fs::metadata(path)?.file_type().is_fifo() {
        return options.open(path);
    }
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    loop {
        match options.open(path) {
            Ok(file) => {
                fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
                return Ok(file);
            }
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                if crate::interrupt::stop().is_stopped() {
                    return Err(io::Error::other("nothing has opened the pipe for reading"));
                }
                sleep(ATTEMPT_INTERVAL);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(not(unix))]
fn open_pipe(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.open(path)
}

/// Sets the permissions of a file that the command has created.
pub(crate) fn set_permissions(path: &Path, permissions: &Permissions) -> io::Result<()> {
    open_again(path, false)?.set_permissions(permissions.clone())
}
