//! Requests of TFTP, and the flows that they announce.

use std::collections::VecDeque;

use super::open::allocated;
use crate::base::FlowKey;
use crate::checkpoint::{Invalid, Saved, StateWriter, state};
use crate::codec::Reader;
use crate::session::{AnnouncedEnds, MessageMeta, Role};

/// Maximum number of requests that are known. At the limit, the oldest one is forgotten.
const REQUESTS_MAX: usize = 256;

/// What is known of a request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) number: u64,
    /// The last part of the path.
    pub(super) name: Option<Box<str>>,
}

state! { struct Request { number, name } }

impl Request {
    /// Returns the memory of a request in bytes, in a box.
    pub(super) fn heap_len(&self) -> usize {
        allocated(size_of::<Self>()) + self.name.as_ref().map_or(0, |name| allocated(name.len()))
    }
}

/// The requests that announced flows, oldest first.
#[derive(Debug, Default)]
pub(super) struct Requests(VecDeque<(AnnouncedEnds, Request)>);

impl Saved for Requests {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.0.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let requests = VecDeque::load(reader)?;
        if requests.len() > REQUESTS_MAX {
            return Err(Invalid::new("too many requests of TFTP"));
        }
        Ok(Self(requests))
    }
}

impl Requests {
    /// Returns the memory of all requests in bytes. Takes linear time.
    pub(super) fn heap_len(&self) -> usize {
        let names: usize = self.0.iter().map(|(_, request)| request.heap_len()).sum();
        allocated(self.0.capacity() * size_of::<(AnnouncedEnds, Request)>()) + names
    }

    /// Notes a request, and the flow with its file that the server opens. A repeated one replaces the earlier one.
    pub(super) fn announce(&mut self, ends: AnnouncedEnds, request: Request) {
        if let Some(place) = self.0.iter().rposition(|(known, _)| *known == ends) {
            self.0.remove(place);
        } else if self.0.len() >= REQUESTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((ends, request));
    }

    /// Returns the last request that announced a flow.
    pub(super) fn of_data(&self, key: &FlowKey, meta: &MessageMeta) -> Option<Request> {
        let client = if meta.from == Role::Client { meta.side } else { meta.side.other() };
        let (_, request) = self.0.iter().rfind(|(ends, _)| ends.are_of(key, client.other()))?;
        Some(request.clone())
    }
}
