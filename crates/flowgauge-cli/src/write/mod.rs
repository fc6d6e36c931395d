//! Output to files, several in one run, and logs of other programs: the options `--write`, `--out` and `--rotate`.

mod folder;
mod part;
mod records;
mod sink;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use flowgauge::export::eve::{EveConfig, Events};
use flowgauge::export::zeek::{Logs, Network, ZeekConfig};
use flowgauge::export::{FlowLog, Format, FormatOptions};

use crate::args::Tunnels;
use crate::columns::Columns;
use crate::console::{Failure, stdout};
use crate::formats::{OutputArgs, OutputFormat, Writer};
use crate::groups::SeriesArgs;
use crate::log_format::LogFormat;
use crate::output::Outputs;
use crate::rows::{RowWriter, Rows};
use folder::Folder;
pub(crate) use part::{LineFiles, Rotation, Series};
use records::{Create, RecordFiles};
pub(crate) use sink::Logged;

/// Options of outputs to files, and of logs.
#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    /// Folder for the files of zeek, zeek-json and eve
    ///
    /// It is created if it does not exist.
    #[arg(long, short = 'o', value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Write to a file or folder, such as zeek=logs; may be repeated
    ///
    /// KIND is ndjson, csv, fixed, parquet or arrow for a file, zeek or zeek-json for a folder with a file for each log, and
    /// eve for a folder with the file eve.json; in `flowgauge live` also pcapng for a file of the frames, which is the default. In `flowgauge sessions`, parquet and
    /// arrow are folders. All outputs are written in one pass. Without --format, nothing is written to standard output.
    #[arg(long, short = 'w', value_name = "KIND=PATH")]
    pub(crate) write: Vec<Target>,

    /// Begin new files after a time or size, such as 1h or 1GiB
    ///
    /// This concerns the files of --write and --out. The time is that of the capture. It precedes the extension of the names: conn.2026-11-26-12-00-00.log. A file has its
    /// name when it is complete.
    #[arg(long, value_name = "WHEN")]
    pub(crate) rotate: Option<Rotation>,

    /// Local networks in zeek, such as 10.0.0.0/8
    ///
    /// The default is the private ranges. The networks are separated by commas. `local_orig`, `local_resp` and `direction` depend on them.
    #[arg(long, hide_short_help = true, value_name = "LIST", value_delimiter = ',')]
    pub(crate) local_networks: Vec<Network>,
}

/// An output of `--write`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The format; `None` for the frames of `flowgauge live` in a pcapng file.
    pub(crate) format: Option<OutputFormat>,
    pub(crate) path: PathBuf,
}

/// The kind of `--write` for frames.
const FRAMES: &str = "pcapng";

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = || {
            let library = [Format::Ndjson, Format::Csv, Format::Fixed].map(OutputFormat::Library);
            let columns = Columns::ALL.map(OutputFormat::Columns);
            library.into_iter().chain(columns).chain(LogFormat::ALL.map(OutputFormat::Logs))
        };
        let (format, path) = match text.split_once('=') {
            Some((FRAMES, path)) => (None, path),
            Some((kind, path)) => {
                let format = kinds().find(|format| format.name() == kind).ok_or_else(|| {
                    let names: Vec<_> = kinds().map(OutputFormat::name).chain([FRAMES]).collect();
                    format!("must be KIND=PATH, where KIND is one of {}", names.join(", "))
                })?;
                (Some(format), path)
            }
            None => (None, text),
        };
        if path.is_empty() {
            Err("must be KIND=PATH".to_owned())
        } else {
            Ok(Self { format, path: path.into() })
        }
    }
}

impl WriteArgs {
    /// Returns the logs: those of the format, which is in a folder or on standard output, and those of `--write`.
    fn logs(&self, format: Option<LogFormat>) -> impl Iterator<Item = (LogFormat, Option<&Path>)> {
        let of_format = format.map(|format| (format, self.out.as_deref()));
        let written = self.write.iter().filter_map(|target| Some((target.format?.logs()?, &*target.path)));
        of_format.into_iter().chain(written.map(|(format, path)| (format, Some(path))))
    }

    /// Returns whether the outputs need the sink for several.
    pub(crate) fn is_wanted(&self, format: Option<LogFormat>) -> bool {
        format.is_some() || self.outputs().next().is_some()
    }

    /// Returns the outputs of `--write` other than frames.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (OutputFormat, &Path)> {
        self.write.iter().filter_map(|target| Some((target.format?, &*target.path)))
    }

    /// Returns whether all outputs are logs in folders. `format` is that of standard output or of `--out`.
    pub(crate) fn has_only_folders(&self, format: Option<OutputFormat>) -> bool {
        let format_fits = format.is_none_or(|format| format.logs().is_some() && self.out.is_some());
        format_fits && self.outputs().all(|(format, _)| format.logs().is_some())
    }

    /// Returns the file for frames.
    pub(crate) fn frames(&self) -> Option<&Path> {
        self.write.iter().find(|target| target.format.is_none()).map(|target| &*target.path)
    }

    /// Returns whether a log needs transactions: all but connections on standard output.
    pub(crate) fn needs_transactions(&self, format: Option<LogFormat>) -> bool {
        self.logs(format).any(|(_, path)| path.is_some())
    }

    /// Returns a failure if options contradict each other. `has_own_folder` states that the format needs `--out`, and
    /// `has_frames` that the command can write frames.
    pub(crate) fn check(
        &self,
        format: Option<LogFormat>,
        (has_own_folder, has_frames): (bool, bool),
    ) -> Result<(), Failure> {
        let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
        if self.out.is_some() && format.is_none() && !has_own_folder {
            return usage("--out requires --format zeek, zeek-json or eve");
        }
        if !self.local_networks.is_empty() && self.logs(format).all(|(format, _)| format == LogFormat::Eve) {
            return usage("--local-networks requires an output zeek or zeek-json");
        }
        if self.rotate.is_some() && self.outputs().next().is_none() && self.out.is_none() {
            return usage("--rotate requires --write or --out");
        }
        match self.write.iter().filter(|target| target.format.is_none()).count() {
            0 => {}
            1 if has_frames => {}
            1 => return usage("--write: must be KIND=PATH, such as ndjson=flows.ndjson"),
            _ => return usage("--write: only one file of frames is written"),
        }
        let mut paths: Vec<_> = self.write.iter().map(|target| &target.path).chain(&self.out).collect();
        paths.sort_unstable();
        if paths.windows(2).any(|pair| matches!(pair, [first, second] if first == second)) {
            return usage("two outputs have the same path");
        }
        Ok(())
    }

    /// Opens all logs. `outputs` are the files that may be created. `has_connections_only` states that standard output has
    /// connections or flows only.
    pub(crate) fn open_logs(
        &self,
        format: Option<LogFormat>,
        outputs: &Arc<Outputs>,
        (tunnels, has_connections_only): (Tunnels, bool),
    ) -> Result<Vec<Box<dyn FlowLog + Send>>, Failure> {
        let open = |(format, path): (LogFormat, Option<&Path>)| -> Result<Box<dyn FlowLog + Send>, Failure> {
            let folder = path.map(|path| {
                Folder::new(path.to_owned(), Arc::clone(outputs), (self.rotate, format.extension()))
            });
            let folder = folder.transpose()?;
            if format == LogFormat::Eve {
                let config = EveConfig::default();
                return Ok(match folder {
                    Some(folder) => Box::new(Events::each(folder, config.has_stats(true))),
                    None => Box::new(Events::stream(stdout(), config.has_flows_only(has_connections_only))),
                });
            }
            let config = ZeekConfig::default()
                .is_json(format == LogFormat::ZeekJson)
                .local_networks(self.local_networks.clone())
                .has_tunnels(tunnels == Tunnels::Both);
            Ok(match folder {
                Some(folder) => Box::new(Logs::each(folder, config)),
                None => Box::new(Logs::stream(stdout(), config.has_connections_only(has_connections_only))),
            })
        };
        self.logs(format).map(open).collect()
    }

    /// Opens all outputs of flow records that are not those of packets: standard output, files and logs. `inputs` are files
    /// that no output may replace.
    pub(crate) fn rows(
        &self,
        output: &OutputArgs,
        series: &SeriesArgs,
        (inputs, is_stream): (&[PathBuf], bool),
    ) -> Result<Rows, Failure> {
        if series.is_used() {
            let writer = series.writer(output.group_target()?, output.groups.count_events);
            return Ok(Rows::new(writer, is_stream).selected(output.selection.filter()?));
        }
        let format = output.format().logs();
        if !self.is_wanted(format) {
            return output.rows(inputs, is_stream);
        }
        let filter = output.selection.filter()?;
        let outputs = Arc::new(Outputs::new(inputs, output.export.force));
        let mut writers = self.open_records(output, (inputs, &outputs))?;
        for log in self.open_logs(format, &outputs, (Tunnels::Innermost, true))? {
            writers.push(Box::new(Writer::Logs(log)));
        }
        Ok(Rows::several(writers, is_stream).selected(filter))
    }

    /// Opens all outputs of flow records other than logs.
    pub(crate) fn open_records(
        &self,
        output: &OutputArgs,
        (inputs, outputs): (&[PathBuf], &Arc<Outputs>),
    ) -> Result<Vec<Box<dyn RowWriter + Send>>, Failure> {
        let mut writers: Vec<Box<dyn RowWriter + Send>> = Vec::new();
        if output.standard().is_some() {
            writers.push(Box::new(output.open(inputs)?));
        }
        for (format, path) in self.outputs() {
            if let Some((create, is_text)) = creator(format, output)? {
                let series = Series::new(path.to_owned(), Arc::clone(outputs), self.rotate);
                writers.push(Box::new(RecordFiles::new(series, create, is_text)));
            }
        }
        Ok(writers)
    }
}

/// Returns what creates the writers of a format of flow records, and whether it is a text format; `None` for logs.
fn creator(format: OutputFormat, output: &OutputArgs) -> Result<Option<(Create, bool)>, Failure> {
    Ok(match format {
        OutputFormat::Library(format) => {
            let (fields, style) = (output.fields.clone(), output.style.style());
            let create: Create = Box::new(move |lines| {
                let mut options = FormatOptions::default();
                options.selection.clone_from(&fields);
                options.style = style;
                Ok(format.writer(lines, options)?)
            });
            Some((create, true))
        }
        #[cfg(feature = "arrow")]
        OutputFormat::Columns(format) => {
            let (fields, columns) = (output.fields.clone(), output.columns);
            let create: Create = Box::new(move |lines| {
                let options = columns.options("flow", fields.clone());
                Ok(Box::new(format.writer::<flowgauge::FlowRecord, _>(lines, options)?))
            });
            Some((create, false))
        }
        #[cfg(not(feature = "arrow"))]
        OutputFormat::Columns(format) => {
            return Err(Failure::Usage(format!(
                "--write {}: this program was built without the feature `arrow`",
                format.name()
            )));
        }
        OutputFormat::Logs(_) => None,
    })
}
