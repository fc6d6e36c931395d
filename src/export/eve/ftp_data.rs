//! Events of type `ftp_data`.

use crate::row::Group;
use crate::transaction::Transfer;

/// A file in a data connection of FTP, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct FtpData<'a> {
    transfer: Command<'a>,
}

/// The object `ftp_data`.
#[derive(Clone, Copy, Debug)]
struct Command<'a>(&'a Transfer);

impl<'a> FtpData<'a> {
    pub(super) const fn new(transfer: &'a Transfer) -> Self {
        Self { transfer: Command(transfer) }
    }
}

crate::table! {
    /// Files and listings in data connections of FTP that a control connection announced.
    impl['a] "eve.ftp_data" for FtpData<'a> as row {
        /// The command.
        "ftp_data": Group<Command<'a>> = Group(row.transfer);
    }
}

crate::table! {
    /// The command that transferred the file.
    impl['a] "eve.ftp_data.ftp_data" for Command<'a> as row {
        /// The last part of the path in the argument.
        "filename": Option<&'a str> => row.0.name.as_deref();
        /// The command in upper case: `RETR`, `STOR`, `STOU`, `APPE`, `LIST`, `NLST` or `MLSD`.
        "command": String = row.0.command.to_ascii_uppercase();
    }
}
