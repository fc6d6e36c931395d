//! A map of few entries whose memory is known.

/// A map whose entries are in the order of their keys. Lookups take logarithmic time, changes linear time.
#[derive(Clone, Debug)]
pub(super) struct Entries<K, V>(Vec<(K, V)>);

impl<K, V> Default for Entries<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + Ord, V> Entries<K, V> {
    fn position(&self, key: K) -> Result<usize, usize> {
        self.0.binary_search_by_key(&key, |(key, _)| *key)
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the memory of the map in bytes, without what values have allocated.
    pub(super) const fn heap_len(&self) -> usize {
        self.0.capacity() * size_of::<(K, V)>()
    }

    /// Returns the least key.
    pub(super) fn first_key(&self) -> Option<K> {
        self.0.first().map(|(key, _)| *key)
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        let position = self.position(key).ok()?;
        self.0.get(position).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let position = self.position(key).ok()?;
        self.0.get_mut(position).map(|(_, value)| value)
    }

    /// Sets the value of a key, and returns the one before.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.position(key) {
            Ok(position) => self.0.get_mut(position).map(|(_, place)| std::mem::replace(place, value)),
            Err(position) => {
                self.0.insert(position, (key, value));
                None
            }
        }
    }

    /// Removes a key. Without any, the memory is freed.
    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let (_, value) = self.0.remove(self.position(key).ok()?);
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        Some(value)
    }
}
