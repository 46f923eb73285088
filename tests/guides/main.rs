//! The tutorials, done step by step, and those statements of the guides that a program can check.
//!
//! | block | what is done with it |
//! |---|---|
//! | `console` | each `$ command` is run; the lines below it must be among what it prints, in that order |
//! | `sh` | in a tutorial, each command starts a server |
//! | `LANGUAGE FILE` | in a tutorial, the file is written; `ifmatch.toml` is looked at too |
//! | `toml` | `ifmatch check` accepts it without a warning |
//! | `log` | the log of ifmatch must hold each line |
//! | `python` | in the guides to Azure and S3, it is run with the real SDK |
//! | `caddyfile`, `nginx`, `javascript vite.config.js` | in the guides to these gateways, the real one takes it |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "a test stops at the first surprise, and nothing outside this binary can name its parts"
)]

mod backends;
mod configurations;
mod edit_lock;
mod forms;
mod guard_an_api;
mod lesson;
mod pages;
mod references;
mod roll_out;
mod sdk;
mod servers;
#[path = "../proxy/support/mod.rs"]
mod support;
