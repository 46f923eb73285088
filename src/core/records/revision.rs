//! The numbers that a store gives to its records, and those that records keep of themselves.

/// A number that grows with every change of any record in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// A revision in a record, which may be the one that the record itself is about to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stamp {
    /// The revision that the store gives to this very record.
    Itself,
    /// An earlier revision.
    At(Revision),
}

impl Stamp {
    /// The revision that the stamp stands for in a record with the revision `own`.
    pub const fn resolve(self, own: Revision) -> Revision {
        match self {
            Self::Itself => own,
            Self::At(revision) => revision,
        }
    }
}
