//! The captures of a table: paths, URLs and patterns.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreRegistry;
use futures::channel::oneshot;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};

use crate::capture::{Capture, Captures};
use crate::location::{Location, WILDCARDS, unreadable};

/// Number of patterns and URLs that are looked up at the same time.
const LOOKUP_COUNT: usize = 16;

/// Returns the captures of paths, URLs and patterns, in their order, those of a pattern in the order of their names. Object
/// stores are those of a registry, and others are created from the environment.
pub(crate) async fn expand(
    patterns: &[String],
    stores: &Arc<dyn ObjectStoreRegistry>,
) -> Result<Vec<Capture>> {
    // Boxed, because the compiler does not see that the futures of all lifetimes are of one type.
    let each: Vec<_> = patterns.iter().map(|pattern| expand_one(pattern, stores).boxed()).collect();
    let captures: Vec<Vec<Capture>> = stream::iter(each).buffered(LOOKUP_COUNT).try_collect().await?;
    Ok(captures.into_iter().flatten().collect())
}

async fn expand_one(pattern: &str, stores: &Arc<dyn ObjectStoreRegistry>) -> Result<Vec<Capture>> {
    if pattern == "-" {
        let problem =
            "standard input can be read only once, but a query may read a table twice; write it to a file";
        return Err(DataFusionError::Execution(format!("{pattern}: {problem}")));
    }
    match Location::of(pattern)? {
        Location::File(path) => look_up(path).await,
        #[cfg(feature = "object-store")]
        Location::Object(url) => crate::objects::expand(&url, stores.as_ref()).await,
        #[cfg(not(feature = "object-store"))]
        Location::Object(url) => {
            let _ = stores;
            Err(url
                .failure("this build does not read object storage; build it with the feature `object-store`"))
        }
    }
}

/// Returns the files of a path or pattern. Folders are listed on a thread of their own, which ends if the future is dropped,
/// and needs no runtime.
async fn look_up(pattern: String) -> Result<Vec<Capture>> {
    if !pattern.contains(WILDCARDS) {
        return files(&pattern, || false);
    }
    let (sender, receiver) = oneshot::channel();
    let list = move || {
        let found = files(&pattern, || sender.is_canceled());
        // Fails if the future was dropped.
        drop(sender.send(found));
    };
    thread::Builder::new().name("flowgauge-list".to_owned()).spawn(list)?;
    receiver.await.unwrap_or_else(|_| internal_err!("the thread that lists files ended"))
}

/// Returns the files of a path or pattern, until `is_dropped` returns true.
fn files(pattern: &str, is_dropped: impl Fn() -> bool) -> Result<Vec<Capture>> {
    let failure = |problem: String| DataFusionError::Execution(format!("{pattern}: {problem}"));
    // A file whose name contains characters of patterns is that file.
    let exists = fs::exists(pattern).unwrap_or(false);
    if exists || !pattern.contains(WILDCARDS) {
        return Ok(vec![capture(pattern.into())?]);
    }
    let mut captures = Vec::new();
    for path in glob::glob(pattern).map_err(|error| failure(error.to_string()))? {
        let path = path.map_err(|error| failure(error.to_string()))?;
        if is_dropped() {
            break;
        }
        if !path.is_dir() {
            captures.push(capture(path)?);
        }
    }
    if captures.is_empty() {
        let problem = io::Error::new(io::ErrorKind::NotFound, "no file has a name of this pattern");
        return Err(unreadable(Path::new(pattern), problem));
    }
    Ok(captures)
}

fn capture(path: PathBuf) -> Result<Capture> {
    let metadata = fs::metadata(&path).map_err(|error| unreadable(&path, error))?;
    if metadata.is_dir() {
        let problem = "is a folder; a pattern such as FOLDER/*.pcap reads its captures";
        return Err(unreadable(&path, io::Error::new(io::ErrorKind::IsADirectory, problem)));
    }
    let len = metadata.len();
    Ok(Capture::new(path, len))
}

/// Distributes captures to at most `count` threads, so that each reads about as many octets.
pub(crate) fn distribute(mut captures: Vec<Capture>, count: usize) -> Vec<Captures> {
    let mut groups = vec![Captures::default(); count.clamp(1, captures.len().max(1))];
    // The longest first, each to the thread that has the least so far.
    captures.sort_by_key(|capture| std::cmp::Reverse(capture.len));
    for capture in captures {
        if let Some(group) = groups.iter_mut().min_by_key(|group| (group.len, group.files.len())) {
            group.len += capture.len;
            group.files.push(capture);
        }
    }
    for group in &mut groups {
        group.files.sort_by(|first, second| first.path.cmp(&second.path));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_distributed_and_no_capture_is_lost() {
        let captures: Vec<_> = (0..100).map(|len| Capture::new(format!("{len}"), len * len)).collect();
        let groups = distribute(captures.clone(), 4);
        assert_eq!(groups.len(), 4);
        let (least, most) =
            (groups.iter().map(|group| group.len).min(), groups.iter().map(|group| group.len).max());
        assert!(most.unwrap() - least.unwrap() < 10_000, "{least:?} {most:?}");
        let mut all: Vec<_> = groups.into_iter().flat_map(|group| group.files).collect();
        all.sort_by_key(|capture| capture.len);
        assert_eq!(all, captures);
        assert_eq!(distribute(captures[..2].to_vec(), 16).len(), 2);
        // Captures without octets are distributed too.
        let empty = vec![Capture::new("a", 0); 10];
        assert!(distribute(empty, 2).iter().all(|group| group.files.len() == 5));
    }
}
