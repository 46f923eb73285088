//! `ifmatch manual`: writes the manual pages and the completions of shells. Packages are made with it (`make dist`).

use std::{fs, io, path::Path, process::ExitCode};

use clap::Command;
use clap_complete::Shell;

use super::{Exit, run::fail};

pub(super) fn execute(command: Command, directory: &Path) -> ExitCode {
    match write(command, directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, Exit::Runtime),
    }
}

fn write(mut command: Command, directory: &Path) -> io::Result<()> {
    let (pages, completions) = (directory.join("man"), directory.join("completions"));
    fs::create_dir_all(&pages)?;
    fs::create_dir_all(&completions)?;
    // The completions add a command `help` to each, which needs no page.
    clap_mangen::generate_to(command.clone(), &pages)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        clap_complete::generate_to(shell, &mut command, "ifmatch", &completions)?;
    }
    Ok(())
}
