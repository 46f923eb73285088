//! The cases, by the odd part in them.

mod bodies;
mod chance;
mod codings;
mod early;
mod heads;
mod interim;
mod order;
mod reuse;
mod trailers;
mod tunnels;

use crate::script::Case;

/// All of them.
pub fn all() -> Vec<Case> {
    [
        bodies::cases(),
        chance::cases(),
        codings::cases(),
        early::cases(),
        heads::cases(),
        interim::cases(),
        order::cases(),
        reuse::cases(),
        trailers::cases(),
        tunnels::cases(),
    ]
    .concat()
}
