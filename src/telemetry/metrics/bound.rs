//! Instruments bound to their attributes, in one table per thread.

use fnv::FnvHashMap;

/// The number of instruments kept for each name. Beyond it they are bound again, at the cost of the requests that
/// provoke that many different ones.
const KEPT_MAX: usize = 128;

/// Bound instruments, by a name of the configuration and by further attributes.
#[derive(Debug)]
pub(super) struct BoundTable<Of, Bound> {
    /// The place of each name in `kept`.
    places: FnvHashMap<String, usize>,
    kept: Vec<Vec<(Of, Bound)>>,
}

impl<Of, Bound> Default for BoundTable<Of, Bound> {
    fn default() -> Self {
        Self { places: FnvHashMap::default(), kept: Vec::new() }
    }
}

impl<Of: PartialEq, Bound> BoundTable<Of, Bound> {
    /// Returns the instrument with this name and these attributes, and binds it if there is none. The search is linear,
    /// which is fastest for a few instruments of a name.
    pub(super) fn get(&mut self, name: &str, of: Of, bind: impl FnOnce(&Of) -> Bound) -> Option<&Bound> {
        let kept = if let Some(place) = self.places.get(name) {
            self.kept.get_mut(*place)?
        } else {
            self.places.insert(name.to_owned(), self.kept.len());
            self.kept.push(Vec::new());
            self.kept.last_mut()?
        };
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
        assert!(table.kept.len() == 1 && table.kept.iter().all(|kept| kept.len() <= KEPT_MAX));
    }
}
