//! Objects as inputs of a scan: a thread reads them in ranges, which a task of the runtime requests.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::object_store::ObjectStoreRegistry;
use flowgauge::StopHandle;
use flowgauge::source::Storage;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore};

use super::failure::{CHANGED, io_error};
use super::ranges::{RANGE_GROWTH, RANGE_LEN_MIN, RangeCharge, RangeMemory};
use super::{location, store};
use crate::capture::{Capture, ObjectVersion, OpenedObjects};
use crate::location::Location;

/// Time after which a thread that waits for octets checks whether it is stopped.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The objects of a scan.
#[derive(Debug)]
pub(crate) struct Objects {
    objects: HashMap<PathBuf, Arc<Object>>,
    requests: Mutex<UnboundedSender<Request>>,
    memory: Arc<RangeMemory>,
    stop: StopHandle,
}

/// An object, and how it is read.
#[derive(Debug)]
struct Object {
    store: Arc<dyn ObjectStore>,
    location: ObjectPath,
    is_s3: bool,
    len: u64,
    version: ObjectVersion,
}

/// Octets as they arrived from a server.
type Octets = Box<dyn AsRef<[u8]> + Send>;

/// A range of an object that a reader waits for.
struct Request {
    object: Arc<Object>,
    range: Range<u64>,
    reply: Sender<io::Result<Octets>>,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("range", &self.range).finish_non_exhaustive()
    }
}

impl Objects {
    /// Returns the objects among captures; `None` if all are files. At most `max_bytes` of memory are charged to `pool`, or the
    /// least range of each reader.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL of an object is invalid, or its store cannot be created from the environment.
    pub(crate) fn open(
        captures: &[Capture],
        stores: &dyn ObjectStoreRegistry,
        memory: (&Arc<dyn MemoryPool>, u64),
        stop: &StopHandle,
    ) -> Result<Option<OpenedObjects>> {
        let mut objects = HashMap::new();
        for capture in captures {
            let Some(version) = &capture.object else { continue };
            let object = Object::new(capture, version, stores)?;
            objects.insert(capture.path.clone(), Arc::new(object));
        }
        if objects.is_empty() {
            return Ok(None);
        }
        let (requests, receiver) = unbounded();
        let (pool, max_bytes) = memory;
        let memory = RangeMemory::new(pool, max_bytes);
        let storage = Self { objects, requests: Mutex::new(requests), memory, stop: stop.clone() };
        // All requests are served at the same time; a reader has at most two.
        let requests = receiver.for_each_concurrent(None, fetch).boxed();
        Ok(Some(OpenedObjects { storage: Arc::new(storage), requests }))
    }
}

impl Object {
    fn new(capture: &Capture, version: &ObjectVersion, stores: &dyn ObjectStoreRegistry) -> Result<Self> {
        let text = capture.path.to_string_lossy();
        let failure =
            |problem: &str| DataFusionError::Execution(format!("{}: {problem}", capture.path.display()));
        let Location::Object(url) = Location::of(&text)? else {
            return Err(failure("is no URL of an object"));
        };
        Ok(Self {
            store: store(&url, stores)?,
            location: location(&url)?,
            is_s3: url.scheme == "s3",
            len: capture.len,
            version: version.clone(),
        })
    }

    /// Returns the options of a request for a range of this version of the object.
    fn options(&self, range: Range<u64>) -> GetOptions {
        let ObjectVersion { e_tag, version } = &self.version;
        GetOptions {
            range: Some(GetRange::Bounded(range)),
            // A weak ETag never matches; the one of the answer is compared.
            if_match: e_tag.clone().filter(|e_tag| !e_tag.starts_with("W/")),
            version: version.clone().filter(|_| e_tag.is_none()),
            ..GetOptions::default()
        }
    }

    /// Returns whether an answer is of this version, for servers that ignore the condition of a request.
    fn is_same(&self, answer: &ObjectMeta) -> bool {
        let has_other = |known: &Option<String>, answer: &Option<String>| matches!((known, answer), (Some(known), Some(answer)) if known != answer);
        self.len == answer.size
            && !has_other(&self.version.e_tag, &answer.e_tag)
            && !has_other(&self.version.version, &answer.version)
    }
}

/// Passes the octets of a range on as they arrive. Ends early if its reader is dropped.
async fn fetch(request: Request) {
    let Request { object, range, reply } = request;
    let scheme = if object.is_s3 { "s3" } else { "http" };
    let outcome = async {
        let failure = |error: object_store::Error| io_error(scheme, &error);
        let answer = object.store.get_opts(&object.location, object.options(range)).await.map_err(failure)?;
        if !object.is_same(&answer.meta) {
            return Err(io::Error::other(CHANGED));
        }
        let mut octets = answer.into_stream();
        while let Some(octets) = octets.try_next().await.map_err(failure)? {
            if reply.send(Ok(Box::new(octets))).is_err() {
                break;
            }
        }
        Ok(())
    };
    if let Err(error) = outcome.await {
        // A reader that was dropped needs no error.
        let _ = reply.send(Err(error));
    }
}

impl Storage for Objects {
    fn find(&self, path: &Path) -> Option<u64> {
        self.objects.get(path).map(|object| object.len)
    }

    fn open(&self, path: &Path, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
        let Some(object) = self.objects.get(path) else { return Err(io::ErrorKind::NotFound.into()) };
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Box::new(RangeReader {
            object: Arc::clone(object),
            requests,
            memory: Arc::clone(&self.memory),
            stop: self.stop.clone(),
            range,
            len: RANGE_LEN_MIN,
            current: None,
            next: None,
            is_first: true,
        }))
    }
}

/// Reads an object in ranges, of which one is requested before it is needed. The first one is short, so that the start of a
/// capture arrives early, and little more is read if it is enough.
struct RangeReader {
    object: Arc<Object>,
    requests: UnboundedSender<Request>,
    memory: Arc<RangeMemory>,
    stop: StopHandle,
    /// What is not requested yet.
    range: Range<u64>,
    /// Length of the next range.
    len: u64,
    current: Option<Pending>,
    next: Option<Pending>,
    /// True while the current range is the first one.
    is_first: bool,
}

/// A range that was requested.
struct Pending {
    replies: Receiver<io::Result<Octets>>,
    octets: Option<Octets>,
    /// Number of octets that were read of `octets`.
    at: usize,
    /// Number of octets of the range that did not arrive yet.
    left: u64,
    charge: RangeCharge,
}

impl RangeReader {
    /// Requests the next range; `None` at the end of the object.
    fn request(&mut self) -> Option<Pending> {
        let left = self.range.end.saturating_sub(self.range.start);
        if left == 0 {
            return None;
        }
        let charge = self.memory.charge(self.len.min(left));
        self.len = self.len.saturating_mul(RANGE_GROWTH).min(super::ranges::RANGE_LEN_MAX);
        let range = self.range.start..self.range.start + charge.len();
        self.range.start = range.end;
        let (reply, replies) = channel();
        let request = Request { object: Arc::clone(&self.object), range, reply };
        // If the task has ended, the reply is disconnected.
        let _ = self.requests.unbounded_send(request);
        Some(Pending { replies, octets: None, at: 0, left: charge.len(), charge })
    }

    /// Returns whether the next range should be requested: all but the first range have one ahead of them, so that captures of
    /// which only the first frames are needed take one request.
    fn is_due(&self) -> bool {
        let is_half = |current: &Pending| current.left <= current.charge.len() / 2;
        self.next.is_none() && self.current.as_ref().is_some_and(|current| !self.is_first || is_half(current))
    }
}

impl Pending {
    /// Waits for octets; returns false if the handle is set first.
    fn wait(&mut self, stop: &StopHandle) -> io::Result<bool> {
        while self.octets.is_none() {
            if stop.is_stopped() {
                return Ok(false);
            }
            match self.replies.recv_timeout(CHECK_INTERVAL) {
                Ok(reply) => self.accept(reply?)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.ended(stop),
            }
        }
        Ok(!stop.is_stopped())
    }

    /// Takes octets that have arrived; returns false if there are none.
    fn poll(&mut self) -> io::Result<bool> {
        if self.octets.is_none() && self.left > 0 {
            match self.replies.try_recv() {
                Ok(reply) => self.accept(reply?)?,
                // Reported by the next read, which waits.
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(false),
            }
        }
        Ok(self.octets.is_some())
    }

    fn accept(&mut self, octets: Octets) -> io::Result<()> {
        let len = (*octets).as_ref().len() as u64;
        let Some(left) = self.left.checked_sub(len) else {
            return Err(io::Error::other("the server sent more octets than were requested"));
        };
        self.left = left;
        self.at = 0;
        self.octets = (len > 0).then_some(octets);
        Ok(())
    }

    fn ended(&self, stop: &StopHandle) -> io::Result<bool> {
        if stop.is_stopped() {
            return Ok(false);
        }
        let problem = format!("the server sent {} octets less than were requested", self.left);
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem))
    }

    /// Copies octets that have arrived.
    fn copy(&mut self, buffer: &mut [u8]) -> usize {
        let Some(octets) = &self.octets else { return 0 };
        let all = (**octets).as_ref();
        let rest = all.get(self.at..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..len), rest.get(..len)) {
            to.copy_from_slice(from);
        }
        self.at += len;
        if self.at == all.len() {
            self.octets = None;
        }
        len
    }

    fn is_over(&self) -> bool {
        self.left == 0 && self.octets.is_none()
    }
}

impl Read for RangeReader {
    /// Waits for octets, and then copies those that have arrived.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.stop.is_stopped() {
            return Ok(0);
        }
        if self.current.as_ref().is_none_or(Pending::is_over) {
            self.is_first &= self.current.is_none();
            self.current = None;
            self.current = self.next.take().or_else(|| self.request());
        }
        if self.is_due() {
            self.next = self.request();
        }
        let Some(current) = &mut self.current else { return Ok(0) };
        if !current.wait(&self.stop)? {
            return Ok(0);
        }
        let mut len = 0;
        while let Some(rest) = buffer.get_mut(len..).filter(|rest| !rest.is_empty()) {
            len += current.copy(rest);
            // An error is reported after the octets before it.
            match current.poll() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if len == 0 => return Err(error),
                Err(error) => {
                    let (reply, replies) = channel();
                    let _ = reply.send(Err(error));
                    current.replies = replies;
                    break;
                }
            }
        }
        Ok(len)
    }
}
