//! The sources of tags, and the rules that an exploration can break.

/// The route's source of tags, and whether others may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// `etag = "version"`, `other_writers = false`.
    Version,
    /// `etag = "content"`, `other_writers = false`.
    ContentExclusive,
    /// `etag = "content"`, `other_writers = true`.
    ContentShared,
}

impl Mode {
    pub const ALL: [Self; 3] = [Self::Version, Self::ContentExclusive, Self::ContentShared];
}

/// The rules; each is kept by default.
#[allow(clippy::struct_excessive_bools, reason = "each rule is kept or broken on its own")]
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Forgetting a record raises the floor of its bucket.
    pub floor_is_raised: bool,
    /// A doubt keeps the claim.
    pub doubt_holds: bool,
    /// A write that gets no answer is a doubt.
    pub timeout_is_a_doubt: bool,
    /// The claim is given back when the outcome is recorded, not when the write is sent.
    pub claim_lasts_until_settled: bool,
    /// The mark of a dead owner becomes a doubt.
    pub takeover_is_a_doubt: bool,
    /// An unclear outcome mints a version.
    pub unclear_mints: bool,
    /// Knowledge gained under a claim is dropped if another write began or ended meanwhile.
    pub disturbed_is_dropped: bool,
    /// A mark or a lease is swapped in against the revision that the verdict was made on.
    pub verdict_is_bound: bool,
    /// Knowledge gained by a read counts only while no write began or ended since.
    pub reads_are_bound: bool,
    /// A read takes the version before the content.
    pub version_goes_first: bool,
    /// An owner reads its clock directly before the first byte.
    pub clock_is_read_again: bool,
    /// No lease is granted beside the mark of a write.
    pub grant_waits_for_writes: bool,
    /// A write of another client takes an ended lease from its holder, who could otherwise renew it.
    pub ended_lease_is_taken: bool,
    /// The upstream applies nothing later than `late_write_window`: the third condition of the promise.
    pub upstream_keeps_late_write_window: bool,
}

impl Rules {
    pub const KEPT: Self = Self {
        floor_is_raised: true,
        doubt_holds: true,
        timeout_is_a_doubt: true,
        claim_lasts_until_settled: true,
        takeover_is_a_doubt: true,
        unclear_mints: true,
        disturbed_is_dropped: true,
        verdict_is_bound: true,
        reads_are_bound: true,
        version_goes_first: true,
        clock_is_read_again: true,
        grant_waits_for_writes: true,
        ended_lease_is_taken: true,
        upstream_keeps_late_write_window: true,
    };
}
