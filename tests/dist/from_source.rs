//! The files that `make install` installs. The program is the one that the tests have anyway, so nothing is compiled.

use std::process::Command;

use super::{PROGRAM, directory, file, output};

#[test]
fn make_install_installs_a_program_that_runs_with_its_manual_and_completions() {
    let root = directory("from-source");
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "--directory"]).arg(file("")).args(["install", "CARGO=true", "PREFIX=/opt"]);
    make.arg(format!("PROGRAM={PROGRAM}")).arg(format!("DESTDIR={}", root.display()));
    let told = output(&mut make);
    let installed = root.join("opt/bin/ifmatch");
    assert!(told.ends_with(&format!("installed: {}\n", installed.display())), "{told}");
    assert!(output(Command::new(&installed).arg("--version")).starts_with("ifmatch "));
    for path in [
        "man/man1/ifmatch-run.1",
        "bash-completion/completions/ifmatch",
        "fish/vendor_completions.d/ifmatch.fish",
        "zsh/site-functions/_ifmatch",
    ] {
        assert!(root.join("opt/share").join(path).exists(), "{path}");
    }
}
