//! Output of the pool: the outcome of a fragment, and datagrams that ended.

use super::datagram::Body;
use super::input::{DatagramKey, Malformed};
use crate::base::{IpProtocol, Timestamp};

/// Outcome of a call to [`Pool::push`](super::Pool::push).
///
/// The pool keeps the fragment's tag with [`Held`](Self::Held), [`Duplicate`](Self::Duplicate),
/// [`Completed`](Self::Completed) and [`CompletedTruncated`](Self::CompletedTruncated), and returns it
/// exactly once: in the tags that [`Held::take_tags`] returns, in the tags of [`Completed`], or in the tags
/// of [`Ended`]. With any other outcome, the pool does not keep the tag, and the caller has to count the
/// fragment.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "a fragment whose tag was not kept must be counted by the caller"]
pub enum Outcome<'p, T> {
    /// The fragment is a whole datagram (RFC 6946): offset zero and no more fragments. The pool ignored
    /// fragments that wait under the same key, and did not keep the tag of this fragment.
    Atomic,
    /// The datagram is not complete yet. The pool keeps the fragment and its tag.
    Held(Held<'p, T>),
    /// The fragment is a duplicate: the pool already holds its part of the datagram. The pool keeps its tag.
    Duplicate(Held<'p, T>),
    /// The datagram is complete. The tags of all its fragments that were not returned before are returned
    /// with it.
    Completed(Completed<'p, T>),
    /// All fragments of the datagram arrived, but a snap length truncated some: only the beginning of the
    /// payload is known. The tags of all fragments that were not returned before are returned with it.
    CompletedTruncated(Completed<'p, T>),
    /// The fragment caused its datagram to be discarded; the datagram's earlier fragments were passed to the
    /// `ended` callback. The pool did not keep the tag of this fragment.
    Discarded(Discard),
    /// The fragment belongs to a datagram that was already discarded. The pool did not keep its tag.
    AlreadyDiscarded,
    /// The fragment cannot be part of any datagram. The pool did not keep its tag.
    Malformed(Malformed),
    /// A cap does not allow the fragment, even after all other datagrams were evicted. The pool did not keep
    /// its tag.
    Refused(Cap),
}

/// Reason that a datagram was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Discard {
    /// Fragments overlap (RFC 5722), and the policy does not resolve the overlap.
    Overlap,
    /// Fragments disagree about the end of the datagram, or a fragment lies beyond that end (teardrop).
    EndConflict,
    /// The datagram has more fragments than [`Limits::fragment_per_datagram_count_max`](crate::base::Limits).
    TooManyFragments,
}

/// The limit of the fragment pool that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cap {
    /// The maximum number of datagrams, [`Limits::fragment_datagram_count_max`](crate::base::Limits).
    Datagrams,
    /// The maximum memory of the pool, [`Limits::fragment_bytes_max`](crate::base::Limits).
    Bytes,
    /// The memory [`Budget`](crate::base::Budget) that all layers share.
    Budget,
}

/// Reason that an incomplete datagram left the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// The deadline of the datagram passed.
    Expired,
    /// The datagram was the oldest when a cap was reached.
    Evicted(Cap),
    /// A fragment arrived that caused the datagram to be discarded.
    Discarded(Discard),
    /// The caller ended all datagrams with [`Pool::finish`](super::Pool::finish).
    Finished,
}

/// State of an incomplete datagram after the fragment just pushed.
#[derive(Debug)]
pub struct Held<'p, T> {
    pub(super) body: &'p mut Body<T>,
    pub(super) overlaps: bool,
}

impl<T: Copy> Held<'_, T> {
    /// Returns the first octets of the datagram, once the fragment with offset zero has arrived: up to 1024
    /// octets, until the first hole. The octets include the ports unless the fragment was truncated; a TCP
    /// header may be incomplete.
    #[must_use]
    pub fn head(&self) -> Option<&[u8]> {
        self.body.head()
    }

    /// Returns the protocol of the datagram's payload, once the fragment with offset zero has arrived.
    #[must_use]
    pub fn protocol(&self) -> Option<IpProtocol> {
        self.body.head().map(|_| self.body.protocol)
    }

    /// Returns the tags that the pool keeps for the datagram, in order of arrival of their fragments.
    #[must_use]
    pub fn tags(&self) -> &[T] {
        &self.body.tags
    }

    /// Removes the tags of the datagram from the pool and returns them, so that the caller counts their
    /// fragments and the pool does not return them again. To count fragments as they arrive, call this method
    /// when [`head`](Self::head) identifies the flow.
    pub fn take_tags(&mut self) -> impl Iterator<Item = T> {
        self.body.tags.drain(..)
    }

    /// Returns the number of fragments of the datagram so far, including duplicates.
    #[must_use]
    pub fn fragment_count(&self) -> u32 {
        self.body.fragment_count
    }

    /// Returns the number of octets of the datagram's payload that have arrived.
    #[must_use]
    pub fn held_len(&self) -> u32 {
        self.body.held_len()
    }

    /// Returns whether the fragment just pushed overlaps other fragments and the policy resolved the overlap.
    #[must_use]
    pub const fn overlaps(&self) -> bool {
        self.overlaps
    }
}

/// Datagram whose fragments have all arrived. The payload and the tags are borrowed until the next call to
/// the pool; a caller that needs the payload for longer copies it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Completed<'p, T> {
    /// Key of the datagram.
    pub key: DatagramKey,
    /// Protocol of the payload according to the fragment with offset zero.
    pub protocol: IpProtocol,
    /// Payload of the datagram; if a fragment was truncated, only the octets before the first octet that was
    /// not captured.
    pub payload: &'p [u8],
    /// Length of the payload on the wire, in octets.
    pub payload_len: u32,
    /// Tags that [`Held::take_tags`] did not return, in order of arrival; the last tag belongs to the
    /// fragment just pushed.
    pub tags: &'p [T],
    /// Number of fragments of the datagram, including duplicates.
    pub fragment_count: u32,
    /// Capture time of the fragment that arrived first.
    pub first_time: Timestamp,
    /// True if the fragment just pushed overlaps other fragments and the policy resolved the overlap.
    pub overlaps: bool,
}

/// Datagram that left the pool without being completed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ended<'a, T> {
    /// Key of the datagram.
    pub key: DatagramKey,
    /// Reason that the datagram left the pool.
    pub reason: EndReason,
    /// First octets of the datagram's payload, or `None` if the fragment with offset zero never arrived, in
    /// which case the ports are unknown.
    pub head: Option<&'a [u8]>,
    /// Protocol of the payload according to the fragment with offset zero; `None` if that fragment never
    /// arrived.
    pub protocol: Option<IpProtocol>,
    /// Tags of the datagram that [`Held::take_tags`] did not return, in order of arrival.
    pub tags: &'a [T],
    /// Number of fragments of the datagram, including duplicates.
    pub fragment_count: u32,
    /// Number of octets of the datagram's payload that had arrived.
    pub held_len: u32,
    /// Capture time of the fragment that arrived first.
    pub first_time: Timestamp,
    /// Capture time of the fragment that arrived last.
    pub last_time: Timestamp,
}
