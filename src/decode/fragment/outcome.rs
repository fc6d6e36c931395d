//! Output of the pool: the outcome of a fragment, and datagrams that ended.

use super::datagram::Body;
use super::input::{DatagramKey, Malformed};
use crate::base::{IpProtocol, Timestamp};

/// Outcome of a call to [`Pool::push`](super::Pool::push).
///
/// The pool keeps the fragment's tag with [`Held`](Self::Held), [`Duplicate`](Self::Duplicate),
/// [`Completed`](Self::Completed) and [`CompletedTruncated`](Self::CompletedTruncated), and returns it exactly once: in
/// the tags that the caller takes from [`Held`], in those of [`Completed`], or in those of [`Ended`]. With
/// any other outcome the tag is not kept, and the caller has to count the fragment.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "a fragment whose tag was not kept must be counted by the caller"]
pub enum Outcome<'p, T> {
    /// A whole datagram in one fragment (RFC 6946): its payload is that of the fragment, and the pool ignored
    /// fragments that wait under the same key. Tag not kept.
    Atomic,
    /// The datagram is not complete yet. Tag kept.
    Held(Held<'p, T>),
    /// The fragment is held already and is not needed again. Tag kept.
    Duplicate(Held<'p, T>),
    /// The datagram is complete. Tag kept, and returned here with those of its other fragments.
    Completed(Completed<'p, T>),
    /// All fragments arrived, but a snap length truncated some: only the beginning of the payload is known.
    /// Tags as above.
    CompletedTruncated(Completed<'p, T>),
    /// The fragment ended its datagram, whose earlier fragments were passed to the `ended` callback. Tag not
    /// kept.
    Discarded(Discard),
    /// The fragment belongs to a datagram that was discarded before. Tag not kept.
    AlreadyDiscarded,
    /// The fragment cannot be part of any datagram. Tag not kept.
    Malformed(Malformed),
    /// A cap does not allow the fragment, even after all other datagrams were evicted. Tag not kept.
    Refused(Cap),
}

/// Reason that a datagram was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Discard {
    /// Fragments overlap (RFC 5722), and the policy does not resolve the overlap.
    Overlap,
    /// Fragments disagree about the end of the datagram, or lie beyond it (teardrop).
    EndConflict,
    /// The datagram has more fragments than [`Limits::fragment_per_datagram_count_max`](crate::base::Limits).
    TooManyFragments,
}

/// Cap that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cap {
    /// [`Limits::fragment_datagram_count_max`](crate::base::Limits).
    Datagrams,
    /// [`Limits::fragment_bytes_max`](crate::base::Limits).
    Bytes,
    /// The [`Budget`](crate::base::Budget) that all layers share.
    Budget,
}

/// Reason that an incomplete datagram left the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// The deadline passed.
    Expired,
    /// The datagram was the oldest when a cap was reached.
    Evicted(Cap),
    /// A fragment arrived that caused the datagram to be discarded.
    Discarded(Discard),
    /// The caller ended the pool.
    Finished,
}

/// State of an incomplete datagram after the fragment just pushed.
#[derive(Debug)]
pub struct Held<'p, T> {
    pub(super) body: &'p mut Body<T>,
    pub(super) overlaps: bool,
}

impl<T: Copy> Held<'_, T> {
    /// Returns the first octets of the datagram, once the fragment with offset zero has arrived: up to 1024,
    /// without a hole. They include the ports unless the fragment was truncated; a TCP header may be
    /// incomplete.
    #[must_use]
    pub fn head(&self) -> Option<&[u8]> {
        self.body.head()
    }

    /// Returns the protocol, once the fragment with offset zero has arrived.
    #[must_use]
    pub fn protocol(&self) -> Option<IpProtocol> {
        self.body.head().map(|_| self.body.protocol)
    }

    /// Returns the tags that the pool keeps for this datagram, in order of arrival.
    #[must_use]
    pub fn tags(&self) -> &[T] {
        &self.body.tags
    }

    /// Takes the tags: the caller has counted these fragments, and the pool does not return them again. Call
    /// it when [`head`](Self::head) identifies the flow, to count fragments as they arrive.
    pub fn take_tags(&mut self) -> impl Iterator<Item = T> {
        self.body.tags.drain(..)
    }

    /// Returns the number of fragments of the datagram so far, including duplicates.
    #[must_use]
    pub fn fragment_count(&self) -> u32 {
        self.body.fragment_count
    }

    /// Returns the number of octets of payload that have arrived.
    #[must_use]
    pub fn held_len(&self) -> u32 {
        self.body.held_len()
    }

    /// Returns whether the fragment just pushed overlaps others and the policy resolved the overlap.
    #[must_use]
    pub const fn overlaps(&self) -> bool {
        self.overlaps
    }
}

/// Datagram whose fragments have all arrived. Borrowed until the next call to the pool: a caller that needs
/// the payload for longer copies it, for example into the batch that contained the fragments.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Completed<'p, T> {
    /// Key of the datagram.
    pub key: DatagramKey,
    /// Protocol in the fragment with offset zero.
    pub protocol: IpProtocol,
    /// Payload of the IP packet; for a truncated one, the octets before the first that was not captured.
    pub payload: &'p [u8],
    /// Octets of the payload on the wire.
    pub payload_len: u32,
    /// Tags that were not taken before, in order of arrival; the last is that of the fragment just pushed.
    pub tags: &'p [T],
    /// Number of fragments, including duplicates.
    pub fragment_count: u32,
    /// Capture time of the fragment that arrived first.
    pub first_time: Timestamp,
    /// True if the fragment just pushed overlaps others and the policy resolved the overlap.
    pub overlaps: bool,
}

/// Datagram that left the pool without being completed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ended<'a, T> {
    /// Key of the datagram.
    pub key: DatagramKey,
    /// Reason that it left the pool.
    pub reason: EndReason,
    /// First octets, or `None` if the fragment with offset zero never arrived, in which case the ports are
    /// unknown.
    pub head: Option<&'a [u8]>,
    /// Protocol in the fragment with offset zero.
    pub protocol: Option<IpProtocol>,
    /// Tags that were not taken before, in order of arrival.
    pub tags: &'a [T],
    /// Number of fragments, including duplicates.
    pub fragment_count: u32,
    /// Octets of payload that had arrived.
    pub held_len: u32,
    /// Capture time of the fragment that arrived first.
    pub first_time: Timestamp,
    /// Capture time of the fragment that arrived last.
    pub last_time: Timestamp,
}
