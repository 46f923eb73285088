//! Fixtures for the tests of several rooms.
//!
//! They are no room themselves: the test of any room may import them, whatever rooms they are made of.

use std::time::Duration;

mod client;
mod configuration;
mod fields;
mod proxy;
mod rules;

pub(crate) use client::{answer, arrived, put_arrived};
pub(crate) use configuration::{config, route, upstream};
pub(crate) use fields::fields;
pub(crate) use proxy::{Proxy, answer_ok, backend, read_message};
pub(crate) use rules::{guard, wait_at_most};

/// The longest time that a test waits for the other side.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The size in bytes of the future that a function makes, which need not be called.
pub(crate) fn size_of_future<A, F: Future>(_make: impl FnOnce(A) -> F) -> usize {
    size_of::<F>()
}
