//! Blocks: the parts of a body that a client uploads one by one, and joins by a list of their ids.

use std::collections::BTreeMap;

/// The id that a client gives a block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockId(pub Vec<u8>);

/// The place of a block's bytes in the file of its upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The number of bytes before the block.
    pub offset: u64,
    /// The length of the block in bytes.
    pub len: u64,
}

/// The limits of one upload.
#[derive(Clone, Copy, Debug)]
pub struct UploadLimits {
    /// The largest number of blocks.
    pub max_blocks: usize,
    /// The largest size of all blocks together, in bytes.
    pub max_bytes: u64,
}

/// The reason why a block or a list of blocks is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFault {
    /// The id is longer or shorter than the ids of the other blocks.
    IdLength,
    /// The upload has as many blocks as it may have.
    TooMany,
    /// The blocks are larger together than a body may be.
    TooLarge,
    /// The list names more blocks than an upload may have.
    ListTooLong,
    /// The list names a block that was not uploaded, or that this proxy no longer has.
    Unknown,
}

/// The blocks of one upload that no list has joined yet.
#[derive(Debug, Default)]
pub struct Blocks {
    extents: BTreeMap<BlockId, Extent>,
    bytes: u64,
}

impl Blocks {
    /// Checks whether the upload may have this block, which replaces the one with the same id.
    pub fn check(&self, id: &BlockId, len: u64, limits: UploadLimits) -> Result<(), BlockFault> {
        // Azure demands ids of one length.
        if self.extents.keys().next().is_some_and(|first| first.0.len() != id.0.len()) {
            return Err(BlockFault::IdLength);
        }
        let replaced = self.extents.get(id);
        if replaced.is_none() && self.extents.len() >= limits.max_blocks {
            return Err(BlockFault::TooMany);
        }
        let others = self.bytes.saturating_sub(replaced.map_or(0, |extent| extent.len));
        if others.saturating_add(len) > limits.max_bytes {
            return Err(BlockFault::TooLarge);
        }
        Ok(())
    }

    /// Adds a block, or replaces the one with the same id.
    pub fn add(&mut self, id: BlockId, extent: Extent) {
        let replaced = self.extents.insert(id, extent);
        self.bytes = self.bytes.saturating_sub(replaced.map_or(0, |extent| extent.len)).saturating_add(extent.len);
    }

    /// Returns the places of the blocks in a list, in its order.
    pub fn listed(&self, list: &[BlockId], limits: UploadLimits) -> Result<Vec<Extent>, BlockFault> {
        if list.len() > limits.max_blocks {
            return Err(BlockFault::ListTooLong);
        }
        let places = list.iter().map(|id| self.extents.get(id).copied().ok_or(BlockFault::Unknown));
        let extents = places.collect::<Result<Vec<_>, _>>()?;
        // A list can name a block more than once.
        let bytes = extents.iter().fold(0_u64, |sum, extent| sum.saturating_add(extent.len));
        if bytes > limits.max_bytes { Err(BlockFault::TooLarge) } else { Ok(extents) }
    }

    /// Returns the id and the length of each block, ordered by id.
    pub fn lengths(&self) -> Vec<(BlockId, u64)> {
        self.extents.iter().map(|(id, extent)| (id.clone(), extent.len)).collect()
    }

    /// The number of blocks.
    pub fn count(&self) -> usize {
        self.extents.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: UploadLimits = UploadLimits { max_blocks: 3, max_bytes: 10 };

    fn id(name: &str) -> BlockId {
        BlockId(name.as_bytes().to_vec())
    }

    fn blocks(all: &[(&str, u64)]) -> Blocks {
        let (mut blocks, mut offset) = (Blocks::default(), 0);
        for (name, len) in all {
            blocks.add(id(name), Extent { offset, len: *len });
            offset += len;
        }
        blocks
    }

    #[test]
    fn a_list_joins_blocks_in_its_own_order() {
        let blocks = blocks(&[("a", 3), ("b", 4)]);
        let (a, b) = (Extent { offset: 0, len: 3 }, Extent { offset: 3, len: 4 });
        assert_eq!(blocks.listed(&[id("b"), id("a")], LIMITS), Ok(vec![b, a]));
        assert_eq!(blocks.listed(&[id("a"), id("a")], LIMITS), Ok(vec![a, a]), "a block can occur twice");
        assert_eq!(blocks.listed(&[], LIMITS), Ok(vec![]));
        assert_eq!(blocks.listed(&[id("a"), id("c")], LIMITS), Err(BlockFault::Unknown));
        assert_eq!(blocks.listed(&[id("b"), id("a"), id("b")], LIMITS), Err(BlockFault::TooLarge));
    }

    #[test]
    fn a_block_that_comes_again_replaces_the_first() {
        let mut blocks = blocks(&[("a", 3), ("b", 4)]);
        assert_eq!(blocks.check(&id("a"), 6, LIMITS), Ok(()));
        assert_eq!(blocks.check(&id("a"), 7, LIMITS), Err(BlockFault::TooLarge));
        blocks.add(id("a"), Extent { offset: 7, len: 6 });
        assert_eq!(blocks.lengths(), [(id("a"), 6), (id("b"), 4)]);
        assert_eq!(blocks.listed(&[id("a")], LIMITS), Ok(vec![Extent { offset: 7, len: 6 }]));
        assert_eq!(blocks.check(&id("b"), 5, LIMITS), Err(BlockFault::TooLarge), "the new length counts");
    }

    #[test]
    fn an_upload_has_limits_and_ids_of_one_length() {
        assert_eq!(blocks(&[]).check(&id("first"), 10, LIMITS), Ok(()));
        assert_eq!(blocks(&[]).check(&id("first"), 11, LIMITS), Err(BlockFault::TooLarge));
        assert_eq!(blocks(&[("a", 1)]).check(&id("bb"), 1, LIMITS), Err(BlockFault::IdLength));
        let full = blocks(&[("a", 1), ("b", 1), ("c", 1)]);
        assert_eq!(full.check(&id("d"), 1, LIMITS), Err(BlockFault::TooMany));
        assert_eq!(full.check(&id("b"), 1, LIMITS), Ok(()));
        let long = vec![id("a"); 4];
        assert_eq!(full.listed(&long, LIMITS), Err(BlockFault::ListTooLong));
    }
}
