//! What comes out: what became of a fragment, and of datagrams that ended.

use super::datagram::Body;
use super::input::DatagramKey;
use crate::base::{IpProtocol, Timestamp};

/// What became of a fragment that was given to [`Pool::push`](super::Pool::push).
///
/// The pool keeps the fragment's tag with [`Held`](Self::Held), [`Duplicate`](Self::Duplicate),
/// [`Completed`](Self::Completed) and [`CompletedCut`](Self::CompletedCut), and gives it back exactly once: in the
/// tags that the caller takes from [`Held`], in those of [`Completed`], or in those of [`Ended`]. With any other outcome
/// the tag was not kept, and the fragment is the caller's to count.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "a fragment whose tag was not kept must be counted by the caller"]
pub enum Outcome<'p, T> {
    /// A whole datagram in one fragment (RFC 6946): its payload is the fragment's own, and the pool did not look at
    /// those that wait under the same key. Tag not kept.
    Atomic,
    /// It waits for the rest. Tag kept.
    Held(Held<'p, T>),
    /// It is there already, and is not needed again. Tag kept.
    Duplicate(Held<'p, T>),
    /// The datagram is whole. Tag kept, and given back here with those of its other fragments.
    Completed(Completed<'p, T>),
    /// All fragments came, but a snap length cut some: only the beginning of the payload is known. Tags as above.
    CompletedCut(Completed<'p, T>),
    /// It ended its datagram, whose earlier fragments went to the `ended` callback. Tag not kept.
    Discarded(Discard),
    /// It belongs to a datagram that was discarded before. Tag not kept.
    AlreadyDiscarded,
    /// It can be no part of any datagram. Tag not kept.
    Malformed(Malformed),
    /// There is no room for it, even after all others made room. Tag not kept.
    Refused(Cap),
}

/// Why a datagram was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Discard {
    /// Fragments overlap (RFC 5722), and the policy does not resolve it.
    Overlap,
    /// Fragments disagree about the datagram's end, or lie beyond it: teardrop.
    EndConflict,
    /// More fragments than [`Limits::fragment_per_datagram_count_max`](crate::base::Limits).
    TooManyFragments,
}

/// What is wrong with a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Malformed {
    /// It has no payload.
    Empty,
    /// More follow, but its length is not a multiple of eight octets (RFC 791, RFC 8200 section 4.5), and it is IPv6, or the
    /// policy is of hosts that drop it, or nothing is left when it is rounded down; or its offset is none, which no field
    /// can say.
    Unaligned,
    /// The whole packet would be longer than 65,535 octets: ping of death.
    BeyondMaximum,
}

/// Which cap left no room.
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

/// Why a datagram that was not completed left the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// Its deadline passed.
    Expired,
    /// It was the oldest when room was needed.
    Evicted(Cap),
    /// A fragment came that ended it.
    Discarded(Discard),
    /// The caller ended the pool.
    Finished,
}

/// A datagram that waits for more fragments, as the fragment just pushed left it.
#[derive(Debug)]
pub struct Held<'p, T> {
    pub(super) body: &'p mut Body<T>,
    pub(super) overlaps: bool,
}

impl<T: Copy> Held<'_, T> {
    /// The datagram's first octets, once the fragment with offset zero has come: up to 1024, without a hole. The ports
    /// are there, unless the fragment was cut; a TCP header may not be whole.
    #[must_use]
    pub fn head(&self) -> Option<&[u8]> {
        self.body.head()
    }

    /// The protocol, once the fragment with offset zero has come.
    #[must_use]
    pub fn protocol(&self) -> Option<IpProtocol> {
        self.body.head().map(|_| self.body.protocol)
    }

    /// The tags that the pool keeps for this datagram, in the order of arrival.
    #[must_use]
    pub fn tags(&self) -> &[T] {
        &self.body.tags
    }

    /// Takes the tags: the caller has counted these fragments, and the pool will not give them again. To be called when
    /// [`head`](Self::head) tells whose they are, if fragments are to be counted as they come.
    pub fn take_tags(&mut self) -> impl Iterator<Item = T> {
        self.body.tags.drain(..)
    }

    /// Fragments of the datagram so far, duplicates too.
    #[must_use]
    pub fn fragment_count(&self) -> u32 {
        self.body.fragment_count
    }

    /// Octets of payload that are there.
    #[must_use]
    pub fn held_len(&self) -> u32 {
        self.body.held_len()
    }

    /// Whether the fragment just pushed overlaps others, and the policy resolved that.
    #[must_use]
    pub const fn overlaps(&self) -> bool {
        self.overlaps
    }
}

/// A datagram all of whose fragments came. Borrowed until the next call to the pool: who needs the payload for longer
/// copies it, for example into the batch that the fragments came in.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Completed<'p, T> {
    /// Which one.
    pub key: DatagramKey,
    /// As the fragment with offset zero told it.
    pub protocol: IpProtocol,
    /// The payload of the IP packet; of a cut one, the octets in front of the first that was not captured.
    pub payload: &'p [u8],
    /// Octets of the payload on the wire.
    pub payload_len: u32,
    /// The tags that were not taken before, in the order of arrival; the last is that of the fragment just pushed.
    pub tags: &'p [T],
    /// Fragments, duplicates too.
    pub fragment_count: u32,
    /// When its first fragment was captured, first by arrival.
    pub first_time: Timestamp,
    /// Whether the fragment just pushed overlaps others, and the policy resolved that.
    pub overlaps: bool,
}

/// A datagram that left the pool without being completed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ended<'a, T> {
    /// Which one.
    pub key: DatagramKey,
    /// Why.
    pub reason: EndReason,
    /// Its first octets, or `None` if the fragment with offset zero never came: nobody knows the ports.
    pub head: Option<&'a [u8]>,
    /// As the fragment with offset zero told it.
    pub protocol: Option<IpProtocol>,
    /// The tags that were not taken before, in the order of arrival.
    pub tags: &'a [T],
    /// Fragments, duplicates too.
    pub fragment_count: u32,
    /// Octets of payload that were there.
    pub held_len: u32,
    /// When its first fragment came, first by arrival.
    pub first_time: Timestamp,
    /// When its last fragment came.
    pub last_time: Timestamp,
}
