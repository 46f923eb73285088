//! Each configuration that the pages show is one that `ifmatch` takes.

use std::fs;

use crate::{
    pages::{all, root},
    support::document::{assert_prints, blocks, shell, steps},
};

#[test]
fn configurations_are_accepted_without_warnings() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut checked = 0;
    for page in all() {
        for block in blocks(&page.text).iter().filter(|block| block.kind.split(' ').next() == Some("toml")) {
            fs::write(directory.path().join("ifmatch.toml"), &block.text).expect("a file");
            let output = shell("ifmatch check ifmatch.toml", directory.path()).output().expect("bash starts");
            let said = String::from_utf8_lossy(&output.stderr);
            let found = (output.status.code(), said.as_ref());
            assert_eq!(found, (Some(0), ""), "{}:\n{}", page.path.display(), block.text);
            checked += 1;
        }
    }
    assert_ne!(checked, 0, "no page shows a configuration");
}

/// In the tutorials they need their servers; the guides show those that need none.
#[test]
fn commands_of_the_guides_print_what_is_shown() {
    let guides = all().into_iter().filter(|page| page.path.starts_with(root().join("docs/how-to")));
    for block in guides.flat_map(|page| blocks(&page.text)).filter(|block| block.kind == "console") {
        for (command, shown) in steps(&block.text) {
            assert_prints(command, root(), &shown);
        }
    }
}
