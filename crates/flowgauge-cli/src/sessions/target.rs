//! Where messages and transactions go.

use std::io::Write as _;
use std::sync::Arc;

use flowgauge::export::Format;

use super::args::SessionsArgs;
use super::rows::Rows;
use crate::console::{Failure, Out, stdout};
use crate::formats::OutputFormat;
use crate::output::Outputs;
use crate::write::{LineFiles, Series};

/// Where messages go, and in which format.
pub(super) enum Target {
    Ndjson(Out),
    Files(LineFiles),
    Table(Rows, Out),
    #[cfg(feature = "arrow")]
    Columns(crate::columns::TableFiles),
}

impl Target {
    /// Opens all targets of the options.
    pub(super) fn open(args: &SessionsArgs, outputs: &Arc<Outputs>) -> Result<Vec<Self>, Failure> {
        let mut targets = Vec::new();
        match args.standard() {
            Some(OutputFormat::Library(Format::Table)) => {
                let mut out = stdout();
                targets.push(Self::Table(Rows::new(&mut out)?, out));
            }
            Some(OutputFormat::Library(_)) => targets.push(Self::Ndjson(stdout())),
            #[cfg(feature = "arrow")]
            Some(OutputFormat::Columns(format)) => {
                let folder = args.written.out.clone().unwrap_or_default();
                targets.push(Self::Columns(args.table_files(format, (folder, outputs))?));
            }
            _ => {}
        }
        for (format, path) in args.written.outputs() {
            match format {
                OutputFormat::Library(_) => {
                    let series = Series::new(path.to_owned(), Arc::clone(outputs), args.written.rotate);
                    targets.push(Self::Files(LineFiles::new(series)));
                }
                #[cfg(feature = "arrow")]
                OutputFormat::Columns(format) => {
                    targets.push(Self::Columns(args.table_files(format, (path.to_owned(), outputs))?));
                }
                #[cfg(not(feature = "arrow"))]
                OutputFormat::Columns(format) => {
                    return Err(Failure::Usage(format!(
                        "--write {}: this program was built without the feature `arrow`",
                        format.name()
                    )));
                }
                OutputFormat::Logs(_) => {}
            }
        }
        Ok(targets)
    }

    /// Writes what is held back.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        match self {
            Self::Ndjson(out) | Self::Table(_, out) => out.flush().map_err(Failure::from),
            Self::Files(files) => files.flush(),
            #[cfg(feature = "arrow")]
            Self::Columns(_) => Ok(()),
        }
    }

    /// Completes the output.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Ndjson(mut out) | Self::Table(_, mut out) => out.flush().map_err(Failure::from),
            Self::Files(files) => files.finish(),
            #[cfg(feature = "arrow")]
            Self::Columns(files) => files.finish(),
        }
    }
}
