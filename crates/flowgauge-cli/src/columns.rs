//! Formats of columns, Parquet and Arrow IPC, which need the feature `arrow`.

use clap::{Args, ValueEnum};

use crate::console::Failure;

/// A format of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    Parquet,
    Arrow,
}

impl Columns {
    pub(crate) const ALL: [Self; 2] = [Self::Parquet, Self::Arrow];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }
}

/// Options of the formats of columns.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ColumnArgs {
    /// Addresses in parquet and arrow: octets or text [default: octets]
    ///
    /// `octets` writes 16 octets, IPv4 addresses mapped to IPv6, and 6 octets for MAC addresses.
    #[arg(long, hide_short_help = true, value_enum, value_name = "TYPE", hide_possible_values = true)]
    pub(crate) addresses: Option<AddressType>,
}

/// The type of addresses in formats of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AddressType {
    /// Constant width, and sorted as addresses are
    Octets,
    /// As in ndjson and csv
    Text,
}

impl ColumnArgs {
    /// Returns a failure if an option has no effect with the output format.
    pub(crate) fn check(self, format: Option<Columns>) -> Result<(), Failure> {
        if self.addresses.is_some() && format.is_none() {
            return Err(Failure::Usage("--addresses requires --format parquet or arrow".to_owned()));
        }
        #[cfg(not(feature = "arrow"))]
        if let Some(format) = format {
            return Err(Failure::Usage(format!(
                "--format {}: this program was built without the feature `arrow`",
                format.name()
            )));
        }
        Ok(())
    }
}

#[cfg(feature = "arrow")]
pub(crate) use writers::*;

#[cfg(feature = "arrow")]
mod writers {
    use std::fs::File;
    use std::io::{self, BufWriter, Write};
    use std::path::PathBuf;
    use std::sync::Arc;

    use flowgauge::export::{RecordWriter, Selection, Summary};
    use flowgauge::row::{Column, Row, RowType, TableInfo};
    use flowgauge_arrow::{Addresses, IpcWriter, Options, ParquetWriter};

    use super::{AddressType, ColumnArgs, Columns};
    use crate::console::Failure;
    use crate::output::{OutputFile, Outputs};

    impl ColumnArgs {
        /// Returns the options of a table.
        pub(crate) fn options(self, table: &'static str, selection: Option<Selection>) -> Options {
            let addresses = match self.addresses {
                Some(AddressType::Text) => Addresses::Text,
                _ => Addresses::Octets,
            };
            Options::default().addresses(addresses).table(table).selection(selection)
        }
    }

    /// Writes rows of one table.
    pub(crate) enum ColumnWriter<W: Write + Send> {
        Parquet(Box<ParquetWriter<W>>),
        Arrow(Box<IpcWriter<W>>),
    }

    impl Columns {
        /// Creates a writer of rows of type `R`.
        pub(crate) fn writer<R: RowType, W: Write + Send>(
            self,
            out: W,
            options: Options,
        ) -> io::Result<ColumnWriter<W>> {
            self.writer_of(R::columns(), out, options)
        }

        /// Creates a writer of rows with these columns.
        fn writer_of<W: Write + Send>(
            self,
            columns: Vec<&'static Column>,
            out: W,
            options: Options,
        ) -> io::Result<ColumnWriter<W>> {
            Ok(match self {
                Self::Parquet => {
                    ColumnWriter::Parquet(Box::new(ParquetWriter::of_columns(columns, out, options)?))
                }
                Self::Arrow => {
                    ColumnWriter::Arrow(Box::new(IpcWriter::stream_of_columns(columns, out, &options)?))
                }
            })
        }
    }

    impl<R: Row, W: Write + Send> RecordWriter<R> for ColumnWriter<W> {
        fn write_if(&mut self, row: &R, permits: &mut dyn FnMut(usize) -> bool) -> io::Result<bool> {
            match self {
                Self::Parquet(writer) => writer.write_if(row, permits),
                Self::Arrow(writer) => writer.write_if(row, permits),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            match self {
                Self::Parquet(writer) => RecordWriter::<R>::flush(&mut **writer),
                Self::Arrow(writer) => RecordWriter::<R>::flush(&mut **writer),
            }
        }

        fn finish(self: Box<Self>) -> io::Result<Summary> {
            match *self {
                Self::Parquet(writer) => RecordWriter::<R>::finish(writer),
                Self::Arrow(writer) => RecordWriter::<R>::finish(writer),
            }
        }
    }

    /// Writes rows of many tables, each to a file of its own in a folder. The files appear when they are complete.
    pub(crate) struct TableFiles {
        format: Columns,
        args: ColumnArgs,
        has_sensitive: bool,
        folder: PathBuf,
        outputs: Arc<Outputs>,
        files: Vec<(&'static str, OutputFile, ColumnWriter<BufWriter<File>>)>,
    }

    impl TableFiles {
        /// Creates the folder if it does not exist.
        pub(crate) fn new(
            (format, args): (Columns, ColumnArgs),
            has_sensitive: bool,
            folder: PathBuf,
            outputs: Arc<Outputs>,
        ) -> Result<Self, Failure> {
            std::fs::create_dir_all(&folder).map_err(|error| Failure::writing(folder.display(), &error))?;
            Ok(Self { format, args, has_sensitive, folder, outputs, files: Vec::new() })
        }

        /// Writes a row of a table. The first row of a table creates its file.
        pub(crate) fn write<R: Row>(&mut self, table: &'static TableInfo, row: &R) -> Result<(), Failure> {
            let index = match self.files.iter().position(|(name, ..)| *name == table.name) {
                Some(index) => index,
                None => self.create(table, row.own_columns())?,
            };
            let Some((_, output, writer)) = self.files.get_mut(index) else { return Ok(()) };
            writer.write(row).map_err(|error| output.failure(&error))
        }

        fn create(
            &mut self,
            table: &'static TableInfo,
            columns: Vec<&'static Column>,
        ) -> Result<usize, Failure> {
            let path = self.folder.join(format!("{}.{}", table.name, self.format.name()));
            let (output, file) = OutputFile::create(self.outputs.claim(&path)?)?;
            let options = self.args.options(table.name, None).has_sensitive(self.has_sensitive);
            // Of each of many tables, a batch is in memory.
            let options = options.limits(1 << 16, 8 << 20);
            let writer = self.format.writer_of(columns, BufWriter::new(file), options);
            let writer = writer.map_err(|error| output.failure(&error))?;
            self.files.push((table.name, output, writer));
            Ok(self.files.len() - 1)
        }

        /// Completes all files.
        pub(crate) fn finish(self) -> Result<(), Failure> {
            for (_, output, writer) in self.files {
                let finished = match writer {
                    ColumnWriter::Parquet(writer) => writer.into_inner().and_then(|mut file| file.flush()),
                    ColumnWriter::Arrow(writer) => writer.into_inner().and_then(|mut file| file.flush()),
                };
                finished.map_err(|error| output.failure(&error))?;
                output.commit()?;
            }
            Ok(())
        }
    }
}
