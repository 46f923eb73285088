//! The `ifmatch` command.

use std::{env, process::ExitCode};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ifmatch::cli::execute(env::args_os(), option_env!("IFMATCH_COMMIT"))
}
