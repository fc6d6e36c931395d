//! Buffers of a writer.

/// The buffer of a [`Writer`](super::Writer): [`Fixed`] or [`Growing`].
///
/// This trait is sealed.
pub trait Buffer: sealed::Sealed {}

impl<B: sealed::Sealed> Buffer for B {}

/// A buffer of the caller, which never grows; see [`Writer::new`](super::Writer::new).
#[derive(Debug)]
pub struct Fixed<'b> {
    octets: &'b mut [u8],
    len: usize,
}

/// A vector that grows with the octets that are appended to it; see [`Writer::growing`](super::Writer::growing).
#[derive(Debug)]
pub struct Growing<'b> {
    octets: &'b mut Vec<u8>,
    /// Length of the vector before the first write.
    start: usize,
}

impl<'b> Fixed<'b> {
    #[inline]
    pub(super) const fn new(octets: &'b mut [u8]) -> Self {
        Self { octets, len: 0 }
    }
}

impl<'b> Growing<'b> {
    #[inline]
    pub(super) const fn new(octets: &'b mut Vec<u8>) -> Self {
        Self { start: octets.len(), octets }
    }
}

pub(super) mod sealed {
    use super::{Fixed, Growing};

    /// Operations that a writer needs. Offsets count from the first octet that the writer wrote.
    pub trait Sealed {
        /// Appends an array. Returns `false` and appends nothing if it does not fit.
        fn append_array<const N: usize>(&mut self, octets: [u8; N]) -> bool;

        /// Appends octets. Returns `false` and appends nothing if they do not fit.
        fn append(&mut self, octets: &[u8]) -> bool;

        /// Appends `len` octets of the value zero, and returns them; `None` if they do not fit.
        fn append_zeros(&mut self, len: usize) -> Option<&mut [u8]>;

        /// Returns the octets that were written.
        fn written(&self) -> &[u8];

        /// Returns the octets that were written.
        fn written_mut(&mut self) -> &mut [u8];

        /// Removes the octets from the offset `len` on.
        fn truncate(&mut self, len: usize);

        /// Returns the number of octets that can be appended.
        fn available(&self) -> usize;
    }

    impl Sealed for Fixed<'_> {
        #[inline(always)]
        fn append_array<const N: usize>(&mut self, octets: [u8; N]) -> bool {
            let Some(target) = self.octets.get_mut(self.len..).and_then(|rest| rest.first_chunk_mut()) else {
                return false;
            };
            *target = octets;
            self.len += N;
            true
        }

        #[inline(always)]
        fn append(&mut self, octets: &[u8]) -> bool {
            let target = self.octets.get_mut(self.len..).and_then(|rest| rest.get_mut(..octets.len()));
            let Some(target) = target else { return false };
            target.copy_from_slice(octets);
            self.len += octets.len();
            true
        }

        #[inline(always)]
        fn append_zeros(&mut self, len: usize) -> Option<&mut [u8]> {
            let target = self.octets.get_mut(self.len..)?.get_mut(..len)?;
            target.fill(0);
            self.len += len;
            Some(target)
        }

        #[inline(always)]
        fn written(&self) -> &[u8] {
            self.octets.get(..self.len).unwrap_or_default()
        }

        #[inline(always)]
        fn written_mut(&mut self) -> &mut [u8] {
            self.octets.get_mut(..self.len).unwrap_or_default()
        }

        #[inline(always)]
        fn truncate(&mut self, len: usize) {
            self.len = self.len.min(len);
        }

        #[inline(always)]
        fn available(&self) -> usize {
            self.octets.len() - self.len
        }
    }

    impl Sealed for Growing<'_> {
        #[inline(always)]
        fn append_array<const N: usize>(&mut self, octets: [u8; N]) -> bool {
            self.octets.extend_from_slice(&octets);
            true
        }

        #[inline(always)]
        fn append(&mut self, octets: &[u8]) -> bool {
            self.octets.extend_from_slice(octets);
            true
        }

        #[inline(always)]
        fn append_zeros(&mut self, len: usize) -> Option<&mut [u8]> {
            let start = self.octets.len();
            self.octets.resize(start.checked_add(len)?, 0);
            self.octets.get_mut(start..)
        }

        #[inline(always)]
        fn written(&self) -> &[u8] {
            self.octets.get(self.start..).unwrap_or_default()
        }

        #[inline(always)]
        fn written_mut(&mut self) -> &mut [u8] {
            self.octets.get_mut(self.start..).unwrap_or_default()
        }

        #[inline(always)]
        fn truncate(&mut self, len: usize) {
            self.octets.truncate(self.start + len);
        }

        #[inline(always)]
        fn available(&self) -> usize {
            isize::MAX as usize - self.octets.len()
        }
    }
}
