//! The `[routes.lease]` table (DESIGN, sections 5 and 8).

use std::{ops::RangeInclusive, time::Duration};

use serde_json::{Value, json};

use super::{
    check::Check,
    kinds::{Count, Flag, OneOf, Time},
    table::{InWords, ValueKind, section},
    units::{ZERO, hours, seconds, show_duration},
    words::guard_words,
    written::{Text, Texts, WrittenTime},
};
use crate::{
    core::{
        http::request_target::{KeptInNames, normalize},
        policy::{AbsentLease, LeaseAuth, LeaseGuards, LeaseRules},
    },
    dialect::settings::Defaults,
};

/// The default prefix of the lease URLs of a route.
pub(crate) const DEFAULT_PREFIX: &str = "/.leases";

section! {
    fills LeaseRules of LeaseKeys given (defaults: Defaults) {
        /// The path below which the native dialect has the leases of resources.
        prefix: String = Prefix(DEFAULT_PREFIX);
        /// The operations that a lease keeps others from.
        guards: LeaseGuards = GuardedOperations(());
        /// Whose credentials decide who may lease a resource.
        auth: LeaseAuth = OneOf(LeaseAuth::Probe);
        /// True if only the client that took a lease can use it.
        bind: bool = Flag(defaults.bind);
        /// True if several clients may hold shared leases of one resource.
        shared: bool = Flag(false);
        /// True if a DELETE waits until no other client holds the lease.
        delete_pending: bool = Flag(false);
        /// True if a client that uses the resource beside its holder gets 409 in place of 412.
        sharing_violation: bool = Flag(false);
        /// True if answers to reads of the resource show the state of its lease.
        show: bool = Flag(false);
        /// True if a GET can take the lease of what it reads.
        acquire_on_read: bool = Flag(false);
        /// True if clients may break a lease that they do not hold.
        client_break: bool = Flag(defaults.client_break);
        /// Whether a resource that does not exist can be leased.
        absent: AbsentLease = OneOf(defaults.absent);
        /// How long a lease is remembered after its end.
        remember_time: Duration = Time(seconds(600)) in ZERO..=hours(24 * 7);
        /// The largest number of leases of one client.
        max_per_principal: usize = Count(100) in 1..=1_000_000;
        /// The largest number of leases of all clients at one address. The default grows with the limit for one client,
        /// so that one client at one address can reach its own limit.
        max_per_address: usize = Count(max_per_principal.saturating_mul(10).clamp(1_000, 1_000_000)) in 1..=1_000_000;
        /// The duration of a lease if the client names none.
        default: Duration = WholeSeconds(defaults.lease_times.default) in seconds(1)..=hours(24 * 7);
        /// The shortest duration that a client may request.
        min: Duration = WholeSeconds(defaults.lease_times.min) in seconds(1)..=hours(24 * 7);
        /// The longest duration that a client may request.
        max: Duration = WholeSeconds(defaults.lease_times.max) in seconds(1)..=hours(24 * 7);
        /// True if a client may request an infinite lease.
        infinite: bool = Flag(defaults.infinite);
        /// True if an operation that the lease guards needs a lease even if no client holds one.
        required: bool = Flag(false);
        /// The longest time that a client may wait for a lease.
        max_wait: Duration = Time(seconds(30)) in ZERO..=hours(1);
        /// The largest number of clients that wait for the lease of one resource.
        max_waiters: usize = Count(64) in 0..=100_000;
        /// The longest time that a client may hold a lease, however often it renews the lease.
        max_hold_time: Duration = Time(defaults.lease_times.max_hold_time) in seconds(1)..=hours(24 * 365);
        /// How long a lease stays after the stream that holds it has broken off.
        linger: Duration = Time(seconds(5)) in ZERO..=seconds(300);
    }
}

/// The path below which the leases lie, or the watches: in normal form, and never the root.
pub(super) struct Prefix;

impl ValueKind<String> for Prefix {
    type Written = Option<Text>;
    type Terms = &'static str;

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Text>, default: &'static str) -> String {
        let Some(value) = written else { return default.to_owned() };
        let (text, hint) = (value.get_ref(), || format!("write {key} = {default:?}"));
        match normalize(text.as_bytes(), KeptInNames::NOTHING) {
            Err(ambiguous) => check.hinted(value.span(), format!("{key} is {text:?}: {ambiguous}"), hint()),
            Ok(normal) if normal.as_str() == "/" => {
                check.hinted(value.span(), format!("{key} is \"/\", where the resources themselves are"), hint());
            }
            Ok(normal) if normal.as_str() != text => {
                let message = format!("{key} is {text:?}, which is not how ifmatch spells that path");
                check.hinted(value.span(), message, format!("write {:?}", normal.as_str()));
            }
            Ok(_) => return text.clone(),
        }
        default.to_owned()
    }
}

/// The words for what a lease guards.
pub(super) struct GuardedOperations;

impl ValueKind<LeaseGuards> for GuardedOperations {
    type Written = Option<Texts>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Texts>, (): ()) -> LeaseGuards {
        let Some(value) = written else { return LeaseGuards::Write };
        let mut words = value.get_ref().iter().map(|word| word.get_ref().as_str()).collect::<Vec<_>>();
        words.sort_unstable();
        let known = [LeaseGuards::Write, LeaseGuards::Read, LeaseGuards::ReadAndWrite, LeaseGuards::Delete];
        let found = known.into_iter().find(|guards| guard_words(*guards) == words);
        found.unwrap_or_else(|| {
            let message = format!("{key} cannot be [{}]", quoted(&words));
            let list = known.map(|guards| format!("[{}]", quoted(guard_words(guards)))).join(", ");
            check.hinted(value.span(), message, format!("it is one of {list}"));
            LeaseGuards::Write
        })
    }
}

impl InWords for LeaseGuards {
    fn shown(&self) -> Value {
        json!(guard_words(*self))
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}

/// A duration that `Lease-Duration` can express.
pub(super) struct WholeSeconds;

impl ValueKind<Duration> for WholeSeconds {
    type Written = Option<WrittenTime>;
    type Terms = (Duration, RangeInclusive<Duration>);

    fn read(
        check: &mut Check<'_>,
        key: &str,
        written: Option<&WrittenTime>,
        (default, range): Self::Terms,
    ) -> Duration {
        if let Some(value) = written.filter(|value| value.get_ref() == "infinite") {
            let message = format!("{key} is \"infinite\", which is no duration");
            check.hinted(value.span(), message, "set lease.infinite = true, which allows leases without an end");
            return default;
        }
        let duration = <Time as ValueKind<Duration>>::read(check, key, written, (default, range));
        match written {
            Some(value) if duration.subsec_nanos() != 0 => {
                let message = format!("{key} is {}, and leases last whole seconds", show_duration(duration));
                check.problem(value.span(), message);
                default
            }
            _ => duration,
        }
    }
}
