//! The room for blocks that wait for their list, and the part of it that one client may have.
//!
//! # Design
//!
//! *Why not a fixed part for each client?* Blocks stay after their request, so a few clients would have all the room. A
//! client may have a part of what all others leave. Each further client gets less, and many get something.
//!
//! *Why do clients that write have more room?* A client that may read can send blocks, and need not have the right to
//! write. Clients whose writes the backend has not been seen to accept have half of the room together. No matter how
//! many addresses they use, the other half is left to clients that write.
//!
//! *Why does a client count by its credentials and by its address?* New credentials are easily made up, and an address
//! is not. One principal can come from many addresses.

/// The part of the room for all clients together that have not been seen to write.
const NEWCOMERS_PART: u64 = 2;
/// The part of the uploads and blocks that one client may have, of those that others leave.
const CLIENT_PART: u64 = 4;
/// The same for bytes. It is larger, because one upload can need much of the room.
const CLIENT_BYTES_PART: u64 = 2;

/// Room for uploads in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadRoom {
    /// The number of uploads.
    pub uploads: u64,
    /// The number of blocks in them.
    pub blocks: u64,
    /// The number of bytes in the blocks.
    pub bytes: u64,
}

/// The room that uploads have taken, with the parts of it that a client's next block depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct TakenRoom {
    /// The room of all clients.
    pub all: UploadRoom,
    /// The room of clients that have not been seen to write.
    pub newcomers: UploadRoom,
    /// The room of the principal.
    pub principal: UploadRoom,
    /// The room of the address.
    pub address: UploadRoom,
}

impl UploadRoom {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            uploads: self.uploads.saturating_add(other.uploads),
            blocks: self.blocks.saturating_add(other.blocks),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    const fn is_within(self, limit: Self) -> bool {
        self.uploads <= limit.uploads && self.blocks <= limit.blocks && self.bytes <= limit.bytes
    }

    const fn without(self, other: Self) -> Self {
        Self {
            uploads: self.uploads.saturating_sub(other.uploads),
            blocks: self.blocks.saturating_sub(other.blocks),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    const fn part(self, count: u64, bytes: u64) -> Self {
        Self { uploads: self.uploads / count, blocks: self.blocks / count, bytes: self.bytes / bytes }
    }
}

/// True if there is room for the blocks of a client. Clients that have not been seen to write share a part of all the
/// room. `has_written` is true if this client has been seen to write.
pub fn has_room(total: UploadRoom, taken: &TakenRoom, wanted: UploadRoom, has_written: bool) -> bool {
    let (room, in_it) =
        if has_written { (total, taken.all) } else { (total.part(NEWCOMERS_PART, NEWCOMERS_PART), taken.newcomers) };
    let has_share = |own: UploadRoom| {
        let left_by_others = room.without(in_it.without(own));
        let share = left_by_others.part(CLIENT_PART, CLIENT_BYTES_PART);
        // A client keeps the room that it has, even if others have left less since. A first upload needs no share.
        let share = if wanted.uploads == 0 { UploadRoom { uploads: own.uploads, ..share } } else { share };
        own.and(wanted).is_within(UploadRoom { uploads: share.uploads.max(1), ..share })
    };
    taken.all.and(wanted).is_within(total)
        && in_it.and(wanted).is_within(room)
        && has_share(taken.principal)
        && has_share(taken.address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: UploadRoom = UploadRoom { uploads: 256, blocks: 100_000, bytes: 1 << 20 };
    const UPLOAD: UploadRoom = UploadRoom { uploads: 1, blocks: 1, bytes: 1 };

    /// Lets clients at this number of addresses begin uploads, in turn, until each has no room left. Returns the number
    /// of uploads of each.
    fn greedy(addresses: usize, has_written: bool) -> (Vec<u64>, TakenRoom) {
        let (mut uploads, mut taken) = (Vec::new(), TakenRoom::default());
        for _ in 0..addresses {
            (taken.principal, taken.address) = (UploadRoom::default(), UploadRoom::default());
            while has_room(TOTAL, &taken, UPLOAD, has_written) {
                taken.all = taken.all.and(UPLOAD);
                if !has_written {
                    taken.newcomers = taken.newcomers.and(UPLOAD);
                }
                // Other credentials each time, so that only the address limits them.
                taken.address = taken.address.and(UPLOAD);
            }
            uploads.push(taken.address.uploads);
        }
        (taken.principal, taken.address) = (UploadRoom::default(), UploadRoom::default());
        (uploads, taken)
    }

    #[test]
    fn each_greedy_client_leaves_room_for_the_next() {
        let (uploads, taken) = greedy(17, false);
        assert_eq!(uploads[..6], [32, 24, 18, 13, 10, 7]);
        assert!(uploads.iter().all(|count| *count > 0), "{uploads:?}");
        assert!(has_room(TOTAL, &taken, UPLOAD, false), "{uploads:?}");
    }

    #[test]
    fn no_number_of_clients_without_rights_takes_the_room_of_those_that_write() {
        let (uploads, taken) = greedy(1_000, false);
        assert_eq!((uploads.iter().sum::<u64>(), taken.all.uploads), (128, 128));
        assert!(!has_room(TOTAL, &taken, UPLOAD, false));
        let mut writer = taken;
        let mut count = 0;
        while has_room(TOTAL, &writer, UPLOAD, true) {
            writer.all = writer.all.and(UPLOAD);
            writer.principal = writer.principal.and(UPLOAD);
            writer.address = writer.principal;
            count += 1;
        }
        assert_eq!(count, 32);
    }

    #[test]
    fn a_client_that_writes_has_a_part_of_what_others_leave() {
        let (uploads, _) = greedy(3, true);
        assert_eq!(uploads, [64, 48, 36]);
    }

    #[test]
    fn principals_and_addresses_have_the_same_share() {
        let own = UploadRoom { uploads: 32, blocks: 32, bytes: 32 };
        for (principal, address) in [(own, UploadRoom::default()), (UploadRoom::default(), own)] {
            let taken = TakenRoom { all: own, newcomers: own, principal, address };
            assert!(!has_room(TOTAL, &taken, UPLOAD, false));
            assert!(has_room(TOTAL, &taken, UploadRoom { uploads: 0, ..UPLOAD }, false), "its uploads can go on");
        }
    }

    /// Each number, at its limit and above it.
    #[test]
    fn blocks_and_bytes_are_counted_as_well() {
        let room = |blocks, bytes| UploadRoom { uploads: 1, blocks, bytes };
        for (own, wanted, expected) in [
            (room(12_499, 0), room(1, 0), true),
            (room(12_500, 0), room(1, 0), false),
            (room(1, (1 << 18) - 1), room(0, 1), true),
            (room(1, 1 << 18), room(0, 1), false),
        ] {
            let taken = TakenRoom { all: own, newcomers: own, principal: own, address: own };
            assert_eq!(has_room(TOTAL, &taken, UploadRoom { uploads: 0, ..wanted }, false), expected, "{own:?}");
        }
    }

    /// Space that others take later ends no upload that has begun.
    #[test]
    fn an_upload_goes_on_when_others_come() {
        let own = UploadRoom { uploads: 32, blocks: 32, bytes: 32 };
        let others = UploadRoom { uploads: 90, blocks: 90, bytes: 90 };
        let taken = TakenRoom { all: own.and(others), newcomers: own.and(others), principal: own, address: own };
        assert!(has_room(TOTAL, &taken, UploadRoom { uploads: 0, blocks: 1, bytes: 1 }, false));
        assert!(!has_room(TOTAL, &taken, UPLOAD, false));
    }
}
