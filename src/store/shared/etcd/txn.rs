//! The transactions that the store makes, and the interpretation of their answers.
//!
//! # Design
//!
//! *Why is a record never compared with the revision 0?* An absent key has the `mod_revision` 0. That is also the floor
//! of a bucket from which no record was ever forgotten. A swap against that floor would succeed after the record was
//! put and forgotten again.
//!
//! *Why one transaction inside another, instead of fewer comparisons?* Only etcd can tell whether the expected revision
//! is that of a record or the floor of an absent one. It cannot be both: a floor is raised in a transaction that puts
//! no record.

use std::ops::RangeInclusive;

use etcd_client::{
    Compare, CompareOp, DeleteOptions, GetOptions, GetResponse, KeyValue, Txn, TxnOp, TxnOpResponse, TxnResponse,
};

use super::keys::EtcdKeys;
use crate::{
    core::{records::record::Revision, resource::ResourceKey},
    store::shared::engine::{KeptText, KeyRange, Swap, SwapOutcome},
};

/// Looks at a record and its floor.
pub(super) fn look(keys: &EtcdKeys, key: &ResourceKey) -> Txn {
    Txn::new().and_then(looks(keys, key))
}

fn looks(keys: &EtcdKeys, key: &ResourceKey) -> Vec<TxnOp> {
    vec![TxnOp::get(keys.record(key), None), TxnOp::get(keys.floor(key.bucket()), None)]
}

/// Replaces the record if it has the expected revision. Otherwise looks at it and its floor.
fn swap(keys: &EtcdKeys, swap: &Swap) -> Txn {
    let Swap { key, expected, text, may_create, .. } = swap;
    let (record, floor, revision) = (keys.record(key), keys.floor(key.bucket()), number(*expected));
    let is_absent = vec![
        Compare::create_revision(&*record, CompareOp::Equal, 0),
        Compare::mod_revision(floor, CompareOp::Equal, revision),
    ];
    let put = TxnOp::put(&*record, text.as_str(), None);
    let create = if *may_create { vec![put.clone()] } else { Vec::new() };
    let absent = Txn::new().when(is_absent).and_then(create).or_else(looks(keys, key));
    if *expected == Revision::default() {
        return Txn::new().and_then(vec![TxnOp::txn(absent)]);
    }
    let is_there = Compare::mod_revision(&*record, CompareOp::Equal, revision);
    Txn::new().when(vec![is_there]).and_then(vec![put]).or_else(vec![TxnOp::txn(absent)])
}

/// Combines the swaps of several records. Each of them succeeds or fails alone.
pub(super) fn together(keys: &EtcdKeys, swaps: &[Swap]) -> Txn {
    match swaps {
        [alone] => swap(keys, alone),
        _ => Txn::new().and_then(swaps.iter().map(|each| TxnOp::txn(swap(keys, each))).collect::<Vec<_>>()),
    }
}

/// Returns the answers to this many swaps that were carried out [`together`], in their order.
pub(super) fn each(answer: TxnResponse, swaps: usize) -> Vec<TxnResponse> {
    if swaps == 1 {
        return vec![answer];
    }
    let of_swap = |operation| match operation {
        TxnOpResponse::Txn(swap) => Some(swap),
        _ => None,
    };
    answer.op_responses().into_iter().filter_map(of_swap).collect()
}

/// Forgets the record if it has this revision, and raises its floor in the same step. Otherwise does nothing.
pub(super) fn forget(keys: &EtcdKeys, key: &ResourceKey, revision: Revision) -> Txn {
    let record = keys.record(key);
    let is_same = Compare::mod_revision(&*record, CompareOp::Equal, number(revision));
    let raise = TxnOp::put(keys.floor(key.bucket()), revision.0.to_string(), None);
    Txn::new().when(vec![is_same]).and_then(vec![TxnOp::delete(record, None::<DeleteOptions>), raise])
}

/// Raises the floors of these buckets.
pub(super) fn raise(keys: &EtcdKeys, buckets: RangeInclusive<u16>) -> Txn {
    Txn::new().and_then(buckets.map(|bucket| TxnOp::put(keys.floor(bucket), "raised", None)).collect::<Vec<_>>())
}

/// Reads the records after that of `after`, in the order of their keys.
pub(super) fn page(keys: &EtcdKeys, selection: KeyRange<'_>, limit: usize) -> Txn {
    let (start, end) = keys.selected(selection);
    let options = GetOptions::new().with_range(end).with_limit(i64::try_from(limit).unwrap_or(i64::MAX));
    Txn::new().and_then(vec![TxnOp::get(start, Some(options))])
}

/// Counts the records.
pub(super) fn count(keys: &EtcdKeys) -> Txn {
    let (start, end) = keys.selected(KeyRange::default());
    Txn::new().and_then(vec![TxnOp::get(start, Some(GetOptions::new().with_range(end).with_count_only()))])
}

/// Puts a value if the key has none, and reads it in any case.
pub(super) fn put_first(key: &str, value: &str) -> Txn {
    let is_absent = Compare::create_revision(key, CompareOp::Equal, 0);
    let put = TxnOp::put(key, value, None);
    // Within a transaction, later operations see the effects of earlier ones.
    let get = TxnOp::get(key, None);
    Txn::new().when(vec![is_absent]).and_then(vec![put, get.clone()]).or_else(vec![get])
}

/// Puts a value if the current one has this revision (0 for none). Otherwise reads the current one.
pub(super) fn put_next(key: &str, expected: Revision, value: &str) -> Txn {
    let is_same = Compare::mod_revision(key, CompareOp::Equal, number(expected));
    Txn::new().when(vec![is_same]).and_then(vec![TxnOp::put(key, value, None)]).or_else(vec![TxnOp::get(key, None)])
}

/// Interprets the answer to the transaction of [`swap`], at the store's revision `at`. `None` if it has another shape.
pub(super) fn swap_outcome(
    answer: &TxnResponse,
    at: Revision,
    may_create: bool,
    is_repeated: bool,
) -> Option<SwapOutcome> {
    let operations = answer.op_responses();
    let absent = match operations.as_slice() {
        [TxnOpResponse::Txn(absent)] => absent,
        _ if answer.succeeded() => return Some(SwapOutcome::Made { revision: at, is_new: false }),
        _ => return None,
    };
    Some(match absent.succeeded() {
        true if may_create => SwapOutcome::Made { revision: at, is_new: true },
        true => SwapOutcome::NoRoom,
        false => SwapOutcome::Other { kept: Some(found(absent)?), is_repeated },
    })
}

/// Interprets the answer to [`look`]: the record or, if it is absent, its floor.
pub(super) fn found(answer: &TxnResponse) -> Option<KeptText> {
    let operations = answer.op_responses();
    let [TxnOpResponse::Get(record), TxnOpResponse::Get(floor)] = operations.as_slice() else { return None };
    let floor = || floor.kvs().first().map(|pair| revision(pair.mod_revision())).unwrap_or_default();
    Some(record.kvs().first().map_or_else(|| KeptText { revision: floor(), text: None }, kept))
}

/// Interprets the key of a record and its value.
pub(super) fn kept(pair: &KeyValue) -> KeptText {
    KeptText { revision: revision(pair.mod_revision()), text: Some(pair.value().to_vec()) }
}

/// Returns the answer to the last read of a transaction.
pub(super) fn last_get(answer: &TxnResponse) -> Option<GetResponse> {
    match answer.op_responses().pop() {
        Some(TxnOpResponse::Get(got)) => Some(got),
        _ => None,
    }
}

/// The store's revision after the transaction, which is also the revision of all that it put.
pub(super) fn revision_of(answer: &TxnResponse) -> Option<Revision> {
    answer.header().map(|header| revision(header.revision()))
}

/// Converts a revision of etcd.
pub(super) fn revision(number: i64) -> Revision {
    Revision(u64::try_from(number).unwrap_or_default())
}

/// Converts a revision for etcd. Its own revisions never exceed the greatest `i64`.
fn number(Revision(revision): Revision) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}
