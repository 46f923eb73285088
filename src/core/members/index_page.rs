//! A page of an index: a limited number of names, in their order.

use std::collections::BTreeSet;

/// The largest number of names on a page. A page is read again each second, and costs each name a look at most once.
pub const PAGE_NAMES_MAX: usize = 1_000;

/// The largest size of all names on a page, in bytes. It has room for names as long as a file system allows.
const PAGE_BYTES_MAX: usize = 256 * 1024;

/// The place where a page of an index begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStart {
    /// After this name.
    After(String),
    /// At the place that the backend names, in its own words.
    Continuation(String),
}

/// The first names of an index after some place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexPage {
    /// The names.
    pub names: BTreeSet<String>,
    /// The place where the next page begins, if there is one.
    pub next: Option<PageStart>,
    after: Option<String>,
    bytes: usize,
}

impl IndexPage {
    /// An empty page that begins there.
    pub fn from(start: Option<&PageStart>) -> Self {
        let after = match start {
            Some(PageStart::After(name)) => Some(name.clone()),
            Some(PageStart::Continuation(_)) | None => None,
        };
        Self { after, ..Self::default() }
    }

    /// Adds a name of the index, in any order. If there is no room for all names, the first ones stay.
    pub fn add(&mut self, name: String) {
        let is_behind = self.after.as_ref().is_some_and(|after| name <= *after);
        let is_of_next = matches!(&self.next, Some(PageStart::After(last)) if name > *last);
        // No file system and no bucket has a longer name.
        if is_behind || is_of_next || name.len() > PAGE_BYTES_MAX / 4 {
            return;
        }
        let len = name.len();
        if self.names.insert(name) {
            self.bytes += len;
        }
        while self.names.len() > PAGE_NAMES_MAX || self.bytes > PAGE_BYTES_MAX {
            self.bytes -= self.names.pop_last().map_or(self.bytes, |name| name.len());
            self.next = self.names.last().cloned().map(PageStart::After);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pages_show_each_name_once_and_in_order() {
        let names: Vec<String> = (0..PAGE_NAMES_MAX * 2 + 7).map(|number| format!("{number:06}")).collect();
        let (mut start, mut shown, mut pages) = (None, Vec::new(), 0);
        loop {
            let mut page = IndexPage::from(start.as_ref());
            for name in names.iter().rev() {
                page.add(name.clone());
            }
            shown.extend(page.names);
            pages += 1;
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        assert_eq!((shown, pages), (names, 3));
    }

    proptest! {
        /// Rule 13: a page has a limit in bytes too.
        #[test]
        fn a_page_has_the_first_names_that_fit(lengths in proptest::collection::vec(1_usize..PAGE_BYTES_MAX / 3, 0..40)) {
            let names: Vec<String> =
                lengths.iter().enumerate().map(|(nth, length)| format!("{nth:03}{}", "x".repeat(*length))).collect();
            let mut page = IndexPage::from(None);
            for name in names.iter().rev() {
                page.add(name.clone());
            }
            prop_assert!(page.names.iter().map(String::len).sum::<usize>() <= PAGE_BYTES_MAX);
            let usable: Vec<&String> = names.iter().filter(|name| name.len() <= PAGE_BYTES_MAX / 4).collect();
            let shown: Vec<&String> = page.names.iter().collect();
            prop_assert_eq!(&shown[..], &usable[..shown.len()]);
            prop_assert_eq!(page.next.is_some(), shown.len() < usable.len());
        }
    }
}
