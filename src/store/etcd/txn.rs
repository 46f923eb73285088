//! The transactions that the store makes, and what their answers say.
//!
//! # Design
//!
//! *Why is a record never compared with the revision 0?* An absent key has the `mod_revision` 0, which is also the floor
//! of a bucket of which nothing was ever forgotten. A swap against that floor would succeed after the record was put and
//! forgotten again.
//!
//! *Why not fewer comparisons in place of one transaction inside another?* Whether the expected revision is that of a
//! record or the floor of an absent one, only etcd can tell. It cannot be both: a floor is raised in a transaction that
//! puts no record.

use etcd_client::{Compare, CompareOp, DeleteOptions, GetOptions, GetResponse, Txn, TxnOp, TxnOpResponse, TxnResponse};

use super::keys::EtcdKeys;
use crate::core::{record::Revision, resource::ResourceKey};

/// What a key and the floor of its bucket were found to be.
pub(super) struct FoundKey {
    /// The record's revision and its text.
    pub(super) record: Option<(Revision, Vec<u8>)>,
    /// The revision that an absent record has.
    pub(super) floor: Revision,
    /// The store's revision at which they were looked at.
    pub(super) at: Revision,
}

/// What became of the transaction of a swap.
pub(super) enum SwapAnswer {
    /// The record was put.
    Put {
        /// Its revision.
        revision: Revision,
        /// Whether there was none before.
        is_new: bool,
    },
    /// It would be a new record, and none may be made.
    NoRoom,
    /// The record had another revision.
    Other(FoundKey),
}

/// Looks at a record and its floor.
pub(super) fn look(keys: &EtcdKeys, key: &ResourceKey) -> Txn {
    Txn::new().and_then(looks(keys, key))
}

fn looks(keys: &EtcdKeys, key: &ResourceKey) -> Vec<TxnOp> {
    vec![TxnOp::get(keys.record(key), None), TxnOp::get(keys.floor(key.bucket()), None)]
}

/// Puts a record in the place of the one with the revision `expected`; else looks.
pub(super) fn swap(keys: &EtcdKeys, key: &ResourceKey, expected: Revision, text: &str, may_create: bool) -> Txn {
    let (record, floor, revision) = (keys.record(key), keys.floor(key.bucket()), number(expected));
    let is_absent = vec![
        Compare::create_revision(&*record, CompareOp::Equal, 0),
        Compare::mod_revision(floor, CompareOp::Equal, revision),
    ];
    let put = TxnOp::put(&*record, text, None);
    let create = if may_create { vec![put.clone()] } else { Vec::new() };
    let absent = Txn::new().when(is_absent).and_then(create).or_else(looks(keys, key));
    if expected == Revision::default() {
        return Txn::new().and_then(vec![TxnOp::txn(absent)]);
    }
    let is_there = Compare::mod_revision(&*record, CompareOp::Equal, revision);
    Txn::new().when(vec![is_there]).and_then(vec![put]).or_else(vec![TxnOp::txn(absent)])
}

/// Carries out the swaps of several records as one: each of them succeeds or fails by itself.
pub(super) fn together(swaps: Vec<Txn>) -> Txn {
    Txn::new().and_then(swaps.into_iter().map(TxnOp::txn).collect::<Vec<_>>())
}

/// What each of the transactions that were carried out [`together`] came to, in their order.
pub(super) fn each(answer: &TxnResponse) -> Vec<TxnResponse> {
    let of_swap = |operation| match operation {
        TxnOpResponse::Txn(swap) => Some(swap),
        _ => None,
    };
    answer.op_responses().into_iter().filter_map(of_swap).collect()
}

/// Forgets the record with this revision and raises its floor in the same step; else does nothing.
pub(super) fn forget(keys: &EtcdKeys, key: &ResourceKey, revision: Revision) -> Txn {
    let record = keys.record(key);
    let is_same = Compare::mod_revision(&*record, CompareOp::Equal, number(revision));
    let raise = TxnOp::put(keys.floor(key.bucket()), revision.0.to_string(), None);
    Txn::new().when(vec![is_same]).and_then(vec![TxnOp::delete(record, None::<DeleteOptions>), raise])
}

/// Raises the floors of these buckets.
pub(super) fn raise(keys: &EtcdKeys, buckets: &[u16]) -> Txn {
    Txn::new()
        .and_then(buckets.iter().map(|bucket| TxnOp::put(keys.floor(*bucket), "raised", None)).collect::<Vec<_>>())
}

/// The records after that of `after`, in the order of their keys.
pub(super) fn page(keys: &EtcdKeys, after: Option<&ResourceKey>, limit: usize) -> Txn {
    let (start, end) = keys.records_after(after);
    let options = GetOptions::new().with_range(end).with_limit(i64::try_from(limit).unwrap_or(i64::MAX));
    Txn::new().and_then(vec![TxnOp::get(start, Some(options))])
}

/// How many records there are.
pub(super) fn count(keys: &EtcdKeys) -> Txn {
    let (start, end) = keys.records_after(None);
    Txn::new().and_then(vec![TxnOp::get(start, Some(GetOptions::new().with_range(end).with_count_only()))])
}

/// Puts a value where there is none; looks at it in any case.
pub(super) fn put_first(key: &str, value: &str) -> Txn {
    let is_absent = Compare::create_revision(key, CompareOp::Equal, 0);
    let put = TxnOp::put(key, value, None);
    // Within a transaction what comes later sees what came before.
    let get = TxnOp::get(key, None);
    Txn::new().when(vec![is_absent]).and_then(vec![put, get.clone()]).or_else(vec![get])
}

/// Puts a value if the one that is there has this revision, 0 for none; else looks at it.
pub(super) fn put_next(key: &str, expected: Revision, value: &str) -> Txn {
    let is_same = Compare::mod_revision(key, CompareOp::Equal, number(expected));
    Txn::new().when(vec![is_same]).and_then(vec![TxnOp::put(key, value, None)]).or_else(vec![TxnOp::get(key, None)])
}

/// What the transaction of [`swap`] came to, at the store's revision `at`. `None` if the answer has not the shape of one.
pub(super) fn swap_answer(answer: &TxnResponse, at: Revision, may_create: bool) -> Option<SwapAnswer> {
    let operations = answer.op_responses();
    let absent = match operations.as_slice() {
        [TxnOpResponse::Txn(absent)] => absent,
        _ if answer.succeeded() => return Some(SwapAnswer::Put { revision: at, is_new: false }),
        _ => return None,
    };
    Some(match absent.succeeded() {
        true if may_create => SwapAnswer::Put { revision: at, is_new: true },
        true => SwapAnswer::NoRoom,
        false => SwapAnswer::Other(found_in(absent, at)?),
    })
}

/// What [`look`] found.
pub(super) fn found(answer: &TxnResponse) -> Option<FoundKey> {
    found_in(answer, revision_of(answer)?)
}

/// What the last look of a transaction found.
pub(super) fn last_get(answer: &TxnResponse) -> Option<GetResponse> {
    match answer.op_responses().pop() {
        Some(TxnOpResponse::Get(got)) => Some(got),
        _ => None,
    }
}

/// The store's revision at the transaction, which is that of what it put.
pub(super) fn revision_of(answer: &TxnResponse) -> Option<Revision> {
    answer.header().map(|header| revision(header.revision()))
}

/// A revision as this program counts them.
pub(super) fn revision(number: i64) -> Revision {
    Revision(u64::try_from(number).unwrap_or_default())
}

fn found_in(looked: &TxnResponse, at: Revision) -> Option<FoundKey> {
    let operations = looked.op_responses();
    let [TxnOpResponse::Get(record), TxnOpResponse::Get(floor)] = operations.as_slice() else { return None };
    Some(FoundKey {
        record: record.kvs().first().map(|pair| (revision(pair.mod_revision()), pair.value().to_vec())),
        floor: floor.kvs().first().map(|pair| revision(pair.mod_revision())).unwrap_or_default(),
        at,
    })
}

/// No revision of etcd is greater than the greatest that it can be asked for.
fn number(Revision(revision): Revision) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}
