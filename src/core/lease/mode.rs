//! The uses of one resource that the holders of its leases permit to each other.

use super::{Usage, Usages};

/// The modes of leases: several clients, or one, may hold a lease of one resource at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseMode {
    /// One client holds the lease.
    Exclusive,
    /// Other clients may hold shared leases too, if the share modes of all permit it.
    Shared(ShareMode),
}

/// The uses that the holder of a shared lease makes of the resource, and those that it permits to other holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShareMode {
    /// The uses that the holder makes of the resource (`Lease-Access`).
    pub access: Usages,
    /// The uses that other holders may make of it (`Lease-Share`).
    pub share: Usages,
}

impl LeaseMode {
    /// A shared lease whose holder does everything, and lets others do everything.
    pub const SHARED: Self = Self::Shared(ShareMode { access: Usages::ALL, share: Usages::ALL });

    /// Returns the word for the mode, as requests and answers have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Shared(_) => "shared",
        }
    }

    /// True if several clients may hold leases of this mode.
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// True if leases of both modes can be held at the same time: each permits what the holder of the other does.
    pub fn stands_beside(self, other: Self) -> bool {
        match (self, other) {
            (Self::Shared(own), Self::Shared(other)) => {
                own.share.includes(other.access) && other.share.includes(own.access)
            }
            _ => false,
        }
    }

    /// True if a holder of this mode has the other mode already: the other mode adds no use, and forbids no further
    /// one.
    pub fn covers(self, other: Self) -> bool {
        match (self, other) {
            (Self::Exclusive, _) => true,
            (Self::Shared(own), Self::Shared(other)) => {
                own.access.includes(other.access) && other.share.includes(own.share)
            }
            (Self::Shared(_), Self::Exclusive) => false,
        }
    }

    /// True if the holder of a lease of this mode may make all of these uses.
    pub fn permits(self, usages: Usages) -> bool {
        match self {
            Self::Exclusive => true,
            Self::Shared(mode) => mode.access.includes(usages),
        }
    }
}

impl Usages {
    /// No use.
    pub const NONE: Self = Self { reads: false, writes: false, deletes: false };
    /// Every use.
    pub const ALL: Self = Self { reads: true, writes: true, deletes: true };

    /// True if all the uses of the other are among these.
    pub const fn includes(self, other: Self) -> bool {
        (self.reads || !other.reads) && (self.writes || !other.writes) && (self.deletes || !other.deletes)
    }

    /// Returns the words for these uses.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        Usage::ALL.into_iter().filter(move |usage| self.contains(*usage)).map(Usage::word)
    }
}

impl Usage {
    /// All uses.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Delete];

    /// Returns the word for the use, as requests and answers have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// All sets of uses.
    pub(crate) fn sets() -> impl Iterator<Item = Usages> + Clone {
        (0..8)
            .map(|bits: u8| Usage::ALL.into_iter().enumerate().filter(move |(place, _)| bits >> place & 1 == 1))
            .map(|usages| usages.map(|(_, usage)| usage).collect())
    }

    /// All modes.
    pub(crate) fn modes() -> impl Iterator<Item = LeaseMode> + Clone {
        let pairs = sets().flat_map(|access| sets().map(move |share| ShareMode { access, share }));
        std::iter::once(LeaseMode::Exclusive).chain(pairs.map(LeaseMode::Shared))
    }

    /// True if the words of a mode alone forbid a use.
    fn forbids(mode: LeaseMode, usage: Usage) -> bool {
        match mode {
            LeaseMode::Exclusive => true,
            LeaseMode::Shared(mode) => !mode.share.words().any(|word| word == usage.word()),
        }
    }

    fn does(mode: LeaseMode, usage: Usage) -> bool {
        match mode {
            LeaseMode::Exclusive => true,
            LeaseMode::Shared(mode) => mode.access.words().any(|word| word == usage.word()),
        }
    }

    /// Issue 34: a grant if neither side forbids what the other does.
    #[test]
    fn leases_stand_beside_each_other_if_neither_forbids_what_the_other_does() {
        let mut pairs = 0;
        for (one, other) in modes().flat_map(|one| modes().map(move |other| (one, other))) {
            let are_shared = one.is_shared() && other.is_shared();
            let meets = |usage| does(one, usage) && forbids(other, usage) || does(other, usage) && forbids(one, usage);
            let expected = are_shared && !Usage::ALL.into_iter().any(meets);
            assert_eq!(one.stands_beside(other), expected, "{one:?} {other:?}");
            assert_eq!(other.stands_beside(one), expected, "{other:?} {one:?}");
            pairs += 1;
        }
        assert_eq!(pairs, 65 * 65);
    }

    /// A holder needs no other grant for a mode that its own covers: leases that stand beside its mode stand beside
    /// both.
    #[test]
    fn a_mode_that_is_covered_meets_nobody_else_and_permits_nothing_more() {
        for (own, wanted) in modes().flat_map(|own| modes().map(move |wanted| (own, wanted))) {
            let is_beside = |third: LeaseMode| !own.stands_beside(third) || wanted.stands_beside(third);
            let meets_nobody_else = modes().all(is_beside);
            let permits_no_more = sets().all(|usages| own.permits(usages) || !wanted.permits(usages));
            let is_covered = own == LeaseMode::Exclusive || wanted.is_shared() && meets_nobody_else && permits_no_more;
            assert_eq!(own.covers(wanted), is_covered, "{own:?} {wanted:?}");
        }
    }

    #[test]
    fn a_holder_makes_the_uses_that_its_own_mode_names() {
        for mode in modes() {
            for usages in sets() {
                let expected = Usage::ALL.into_iter().all(|usage| !usages.contains(usage) || does(mode, usage));
                assert_eq!(mode.permits(usages), expected, "{mode:?} {usages:?}");
            }
        }
    }
}
