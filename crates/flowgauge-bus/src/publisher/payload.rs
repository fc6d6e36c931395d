//! Buffers for payloads, which are used again once all subscribers have received them.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use crate::lock::lock;

/// Maximum number of unused buffers.
const BUFFER_COUNT_MAX: usize = 64;

/// Unused buffers. The one that was released first is used first: the cache of the processor that received the other ones
/// may still contain them, and it is slow to write to that memory from another processor.
#[derive(Clone, Debug)]
pub(super) struct BufferPool {
    buffers: Arc<Mutex<VecDeque<Vec<u8>>>>,
    /// Capacity of a buffer in octets.
    capacity: usize,
}

impl BufferPool {
    pub(super) fn new(capacity: usize) -> Self {
        Self { buffers: Arc::default(), capacity }
    }

    /// Returns an empty buffer.
    pub(super) fn buffer(&self) -> Vec<u8> {
        lock(&self.buffers).pop_front().unwrap_or_else(|| Vec::with_capacity(self.capacity))
    }

    /// Returns a payload whose buffer returns to the pool with its last clone.
    pub(super) fn payload(&self, octets: Vec<u8>) -> Bytes {
        Bytes::from_owner(Payload { octets, pool: self.clone() })
    }
}

struct Payload {
    octets: Vec<u8>,
    pool: BufferPool,
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.octets
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        let mut buffer = mem::take(&mut self.octets);
        buffer.clear();
        // A buffer for an event that is longer than a payload is not kept.
        if buffer.capacity() < self.pool.capacity * 2 {
            let mut buffers = lock(&self.pool.buffers);
            if buffers.len() < BUFFER_COUNT_MAX {
                buffers.push_back(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_limited() {
        let pool = BufferPool::new(64);
        let count = |pool: &BufferPool| lock(&pool.buffers).len();
        let mut octets = pool.buffer();
        octets.extend(b"payload");
        let address = octets.as_ptr();
        let payload = pool.payload(octets);
        let clone = payload.clone();
        drop(payload);
        assert_eq!((count(&pool), &clone[..]), (0, &b"payload"[..]));
        drop(clone);
        // The first one that was released is used first.
        drop(pool.payload(Vec::with_capacity(64)));
        let again = pool.buffer();
        assert_eq!((again.as_ptr(), again.len()), (address, 0));
        // Those of excessive length, and too many, are not kept.
        drop(pool.payload(vec![0; 128]));
        assert_eq!(count(&pool), 1);
        drop((0..100).map(|_| pool.payload(Vec::with_capacity(64))).collect::<Vec<_>>());
        assert_eq!(count(&pool), BUFFER_COUNT_MAX);
    }
}
