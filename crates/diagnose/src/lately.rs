// SPDX-License-Identifier: MIT
//! Which connections were seen lately, by their hashes: exact, unless two hashes of 64 bits are
//! equal.

/// Number of slots; when half of them are taken, all is forgotten.
const SLOTS: usize = 1 << 16;

#[derive(Debug)]
pub(crate) struct Lately {
    /// 0: empty.
    slots: Vec<u64>,
    taken: usize,
}

impl Default for Lately {
    fn default() -> Self {
        Lately { slots: vec![0; SLOTS], taken: 0 }
    }
}

impl Lately {
    /// Adds a connection, and returns whether it is new.
    #[inline]
    pub fn adds(&mut self, hash: u64) -> bool {
        let hash = hash.max(1);
        // The lowest bits selected the shelf.
        let mut place = (hash >> 8) as usize % SLOTS;
        while self.slots[place] != 0 {
            if self.slots[place] == hash {
                return false;
            }
            place = (place + 1) % SLOTS;
        }
        if self.taken == SLOTS / 2 {
            self.slots.fill(0);
            self.taken = 0;
        }
        self.slots[place] = hash;
        self.taken += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_connection_is_new_once_until_all_are_forgotten() {
        let (mut lately, mut seen) = (Lately::default(), HashSet::new());
        let mut hash = 1u64;
        for n in 0..4 * SLOTS {
            hash = hash.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let hash = hash >> (n % 50);
            if seen.len() == SLOTS / 2 && !seen.contains(&hash.max(1)) {
                seen.clear();
            }
            assert_eq!(lately.adds(hash), seen.insert(hash.max(1)));
        }
    }
}
