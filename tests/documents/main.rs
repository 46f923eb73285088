//! The documents: `README.md` and the book in `docs/`.
//!
//! | module | what it tries |
//! |---|---|
//! | [`blocks`] | every command, configuration and answer in the pages that show the running program |
//! | [`keys`] | the page of all keys, which is made of their tables |
//! | [`refusals`] | the page of refusals: an entry for each code, and the sample |
//! | [`links`] | links and their anchors, and the list of pages |
//! | [`prose`] | phrases and sentences that no document has |
//! | [`facts`] | tables that repeat what the repository holds |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

#[path = "../proxy/support/mod.rs"]
mod support;

mod blocks;
mod facts;
mod keys;
mod links;
mod pages;
mod prose;
mod refusals;
