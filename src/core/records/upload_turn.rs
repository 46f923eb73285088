//! The turn of a process at an upload in blocks, in a store that proxies share.
//!
//! # Design
//!
//! *Why turns?* Blocks wait in the process that received them. A client may have sent blocks with the same ids to another
//! process since. A list here would then join bytes that the client has replaced.
//!
//! *What is a turn?* The process that gets a block of an upload signs the record of the upload, unless its sign is the
//! last one. The revision of the record names the turn. A list joins only blocks of the turn that the record still
//! shows. So a list is refused if any block of the upload came to another process later, or in between.
//!
//! *What if the store forgets the record?* Its revision is then that of its bucket, which is never lower. The turn is
//! the same, or the list is refused and the client uploads again.

use std::time::Duration;

use super::record::{Record, Revision, Snapshot, WaitingSign};

/// Signs the record of an upload for a process that gets a block of it, for this long. `None` if the process has its
/// turn: it is the one that it holds blocks of, or the process was the last to sign.
pub fn take_turn(snapshot: &Snapshot, owner: u64, held: Option<Revision>, lasts: Duration) -> Option<Record> {
    let is_signed = snapshot.record.waiting.iter().any(|sign| sign.owner == owner);
    if held == Some(snapshot.revision) || is_signed {
        return None;
    }
    let until = snapshot.now.plus(lasts);
    Some(Record { waiting: vec![WaitingSign { owner, until }], ..snapshot.draft() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::StoreTime;

    const LASTS: Duration = Duration::from_secs(3_600);

    /// Returns the record of an upload that no process has signed, in a bucket with this floor.
    fn absent(floor: u64) -> Snapshot {
        let floor = Revision(floor);
        Snapshot::new(floor, Record::absent(floor), StoreTime::from_milliseconds(1_000))
    }

    /// The turn of a process after one of its blocks.
    fn block(snapshot: &mut Snapshot, owner: u64, held: Option<Revision>) -> Revision {
        if let Some(next) = take_turn(snapshot, owner, held, LASTS) {
            let revision = Revision(snapshot.revision.0 + 1);
            *snapshot = Snapshot::new(revision, next.resolved(revision), snapshot.now);
        }
        snapshot.revision
    }

    #[test]
    fn a_process_keeps_its_turn_until_another_gets_a_block() {
        let mut snapshot = absent(7);
        let first = block(&mut snapshot, 1, None);
        assert_eq!(block(&mut snapshot, 1, Some(first)), first);
        assert_eq!(block(&mut snapshot, 1, None), first, "its answer may have been lost, or its blocks were joined");
        let other = block(&mut snapshot, 2, None);
        let again = block(&mut snapshot, 1, Some(first));
        assert!(first < other && other < again);
    }

    #[test]
    fn a_turn_outlives_its_record_only_if_nothing_else_was_forgotten() {
        let mut snapshot = absent(7);
        let turn = block(&mut snapshot, 1, None);
        let mut forgotten = absent(turn.0);
        assert_eq!(block(&mut forgotten, 1, Some(turn)), turn);
        let mut later = absent(turn.0 + 1);
        assert_ne!(block(&mut later, 1, Some(turn)), turn);
    }

    #[test]
    fn the_record_can_be_forgotten() {
        let mut snapshot = absent(7);
        block(&mut snapshot, 1, None);
        assert!(snapshot.record.is_idle(snapshot.now));
    }
}
