//! Answers of the API server that are kept for some seconds.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Further entries push out the ones that expire first. Nobody can fill memory with tokens.
const ENTRIES_MAX: usize = 1024;

pub struct Cache<K, V> {
    entries: BTreeMap<K, (V, Instant)>,
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

impl<K: Ord + Clone, V: Clone> Cache<K, V> {
    pub fn get(&self, key: &K) -> Option<V> {
        let (value, expires) = self.entries.get(key)?;
        (*expires > Instant::now()).then(|| value.clone())
    }

    pub fn insert(&mut self, key: K, value: V, ttl: Duration) {
        let now = Instant::now();
        if self.entries.len() >= ENTRIES_MAX {
            self.entries.retain(|_, (_, expires)| *expires > now);
        }
        if self.entries.len() >= ENTRIES_MAX {
            let first = self.entries.iter().min_by_key(|(_, (_, expires))| *expires);
            if let Some(key) = first.map(|(key, _)| key.clone()) {
                self.entries.remove(&key);
            }
        }
        self.entries.insert(key, (value, now + ttl));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn entries_expire() {
        let mut cache = Cache::default();
        cache.insert("token", 1, TTL);
        assert_eq!(cache.get(&"token"), Some(1));
        tokio::time::advance(TTL).await;
        assert_eq!(cache.get(&"token"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_entries_pushes_out_the_oldest() {
        let mut cache = Cache::default();
        for n in 0..2 * ENTRIES_MAX {
            cache.insert(n, (), TTL);
            tokio::time::advance(Duration::from_micros(1)).await;
        }
        assert_eq!(cache.entries.len(), ENTRIES_MAX);
        assert!(cache.get(&0).is_none() && cache.get(&(2 * ENTRIES_MAX - 1)).is_some());
    }
}
