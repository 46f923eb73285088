//! Instruments that are bound to their attributes, a table for each thread.

use std::collections::HashMap;

/// So many are kept for each name. Beyond that they are bound anew: who provokes so many different ones pays for it.
const KEPT_MAX: usize = 128;

/// What was bound, by a name of the configuration and by what else tells them apart.
#[derive(Debug)]
pub(super) struct BoundTable<Of, Bound>(HashMap<String, Vec<(Of, Bound)>>);

impl<Of, Bound> Default for BoundTable<Of, Bound> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<Of: PartialEq, Bound> BoundTable<Of, Bound> {
    /// What is bound under this name; it is made where there is none. With few of a name a look at each is the fastest.
    pub(super) fn get(&mut self, name: &str, of: Of, bind: impl FnOnce(&Of) -> Bound) -> Option<&Bound> {
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), Vec::new());
        }
        let kept = self.0.get_mut(name)?;
        let place = kept.iter().position(|(other, _)| *other == of).unwrap_or_else(|| {
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            let bound = bind(&of);
            kept.push((of, bound));
            kept.len() - 1
        });
        kept.get(place).map(|(_, bound)| bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_bound_once() {
        let mut table = BoundTable::default();
        let mut binds = 0;
        for (name, of) in [("a", 1), ("a", 2), ("b", 1), ("a", 1), ("b", 1)] {
            let bound = table.get(name, of, |of| {
                binds += 1;
                format!("{name}{of}")
            });
            assert_eq!(bound, Some(&format!("{name}{of}")));
        }
        assert_eq!(binds, 3);
    }

    #[test]
    fn a_table_does_not_grow_for_ever() {
        let mut table = BoundTable::default();
        for of in 0..10_000 {
            table.get("a", of, |of| *of);
        }
        assert!(table.0.get("a").is_some_and(|kept| kept.len() <= KEPT_MAX));
    }
}
