//! Captures in object storage: how they are found, and in which store.

mod failure;
mod ranges;
mod storage;

use std::io;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::{ObjectStoreRegistry, ObjectStoreUrl};
use futures::TryStreamExt as _;
use glob::{MatchOptions, Pattern};
use object_store::aws::AmazonS3Builder;
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectMeta, ObjectStore, ObjectStoreExt as _};

use crate::capture::{Capture, ObjectVersion};
use crate::location::{ObjectUrl, WILDCARDS};
use failure::{cause, io_error};

pub(crate) use storage::Objects;

/// A pattern matches the names of objects as one of paths matches the names of files: only `**` matches slashes.
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Returns the captures of a URL or pattern, those of a pattern in the order of their names.
pub(crate) async fn expand(url: &ObjectUrl<'_>, stores: &dyn ObjectStoreRegistry) -> Result<Vec<Capture>> {
    let is_http = is_http(url);
    if is_http && url.key.contains(['*', '?', '[', '#']) {
        return Err(url.failure(
            "HTTP has no listing of objects, so that a pattern is not possible, nor is a query or fragment of a URL; name each \
             capture by its URL",
        ));
    }
    if url.key.is_empty() || url.key.ends_with('/') {
        let problem = "is no object; a pattern such as s3://BUCKET/FOLDER/*.pcap reads its captures";
        return Err(url.failure(problem));
    }
    let store = store(url, stores)?;
    if url.key.contains(WILDCARDS) && !is_http {
        return list(url, store.as_ref()).await;
    }
    let location = location(url)?;
    let meta = store.head(&location).await.map_err(|error| url.unreadable(io_error(url.scheme, &error)))?;
    Ok(vec![capture(url.as_str().to_owned(), meta)?])
}

/// Returns the objects whose names match the pattern of a URL. Only those that begin with its text before the first character
/// of a pattern are candidates.
async fn list(url: &ObjectUrl<'_>, store: &dyn ObjectStore) -> Result<Vec<Capture>> {
    let pattern = Pattern::new(url.key).map_err(|error| url.failure(error))?;
    let literal = url.key.split(WILDCARDS).next().unwrap_or_default();
    let folder = literal.rsplit_once('/').map(|(folder, _)| folder);
    let prefix = folder.map(Path::parse).transpose().map_err(|error| url.failure(error))?;
    // A store lists whole folders, and can omit names up to another one, which must not match itself.
    let mut before = literal.chars();
    before.next_back();
    let before = before.as_str();
    let offset = if folder.map_or(0, |folder| folder.len() + 1) < before.len() {
        Path::parse(before).ok()
    } else {
        None
    };
    let mut objects = match &offset {
        Some(offset) => store.list_with_offset(prefix.as_ref(), offset),
        None => store.list(prefix.as_ref()),
    };
    let mut captures = Vec::new();
    while let Some(meta) =
        objects.try_next().await.map_err(|error| url.unreadable(io_error(url.scheme, &error)))?
    {
        // Objects without octets are no captures; those with the names of folders mark these.
        if meta.size > 0 && pattern.matches_with(meta.location.as_ref(), MATCHING) {
            let name = format!("{}://{}/{}", url.scheme, url.authority, meta.location);
            captures.push(capture(name, meta)?);
        }
    }
    if captures.is_empty() {
        let problem =
            io::Error::new(io::ErrorKind::NotFound, "no object with octets has a name of this pattern");
        return Err(url.unreadable(problem));
    }
    captures.sort_by(|first, second| first.path.cmp(&second.path));
    Ok(captures)
}

fn capture(url: String, meta: ObjectMeta) -> Result<Capture> {
    Capture::in_storage(url, meta.size, ObjectVersion::new(meta.e_tag, meta.version))
}

fn is_http(url: &ObjectUrl<'_>) -> bool {
    matches!(url.scheme, "http" | "https")
}

/// Returns the name of an object in its store. The path of a URL of HTTP is percent-encoded, and a name in a bucket is not.
fn location(url: &ObjectUrl<'_>) -> Result<Path> {
    let path = if is_http(url) { Path::from_url_path(url.key) } else { Path::parse(url.key) };
    path.map_err(|error| url.failure(error))
}

/// Returns the store of a URL: that of the registry, or else one that is created from the environment and registered.
fn store(url: &ObjectUrl<'_>, stores: &dyn ObjectStoreRegistry) -> Result<Arc<dyn ObjectStore>> {
    let root = format!("{}://{}", url.scheme, url.authority);
    let key = ObjectStoreUrl::parse(&root).map_err(|error| match error {
        DataFusionError::External(error) => url.failure(error),
        error => url.failure(error),
    })?;
    if let Ok(store) = stores.get_store(key.as_ref()) {
        return Ok(store);
    }
    let failure = |error: object_store::Error| url.failure(cause(url.scheme, &error));
    let store: Arc<dyn ObjectStore> = match url.scheme {
        "s3" => {
            Arc::new(AmazonS3Builder::from_env().with_bucket_name(url.authority).build().map_err(failure)?)
        }
        "http" | "https" => {
            let options = ClientOptions::new().with_allow_http(url.scheme == "http");
            let builder = HttpBuilder::new().with_url(root).with_client_options(options);
            Arc::new(builder.build().map_err(failure)?)
        }
        scheme => {
            let problem = format!(
                "captures are read from files, s3://, http:// and https://, and from stores that a program registers, not from \
                 {scheme}://"
            );
            return Err(url.failure(problem));
        }
    };
    stores.register_store(key.as_ref(), Arc::clone(&store));
    Ok(store)
}
