//! Routes for Git LFS: their defaults, and the settings that do not suit them.

use ifmatch::core::policy::{AbsentLease, LeaseGuards, Require};

use super::{BASE, config, problems, warnings};

/// [`BASE`] with repositories on its route, and locks on a disk.
fn repositories(added: &str) -> String {
    let store = "[store]\nkind = \"disk\"\npath = \"/var/lib/ifmatch/locks\"\n";
    format!("{store}{}dialect = \"git-lfs\"\n{added}\n", BASE.replace("optimistic", "pessimistic"))
}

#[test]
fn the_git_lfs_dialect_has_defaults_of_its_own() {
    let config = config(&repositories("owner_header = \"X-Forwarded-User\"\nlease = { client_break = false }"));
    let guard = config.routes.first().and_then(|route| route.guard.clone()).expect("a guard");
    let lease = guard.lease.as_ref().expect("locks");
    assert_eq!((lease.bind, lease.client_break, lease.infinite, lease.required), (true, false, true, false));
    assert_eq!((lease.absent, lease.guards, guard.require), (AbsentLease::Allow, LeaseGuards::Write, Require::Never));
    assert_eq!(guard.owner_header.as_ref().map(http::HeaderName::as_str), Some("x-forwarded-user"));
    assert!(guard.append_methods.is_empty());
}

#[test]
fn each_setting_without_a_meaning_for_locks_is_one_problem() {
    for line in [
        "prefix = \"/.locks\"",
        "default = \"30s\"",
        "max_hold_time = \"2h\"",
        "shared = true",
        "max_wait = \"1s\"",
        "linger = \"1s\"",
        "bind = false",
        "required = true",
        "absent = \"refuse\"",
    ] {
        let key = line.split(' ').next().expect("a key");
        let expected = format!("lease.{key} has no effect in the git-lfs dialect");
        assert_eq!(problems(&repositories(&format!("[routes.lease]\n{line}"))), [expected]);
    }
    for (added, expected) in [
        ("lease = { guards = [\"read\"] }", "lease.guards in the git-lfs dialect is [\"write\"]"),
        ("lease = { infinite = false }", "lease.infinite in the git-lfs dialect is true"),
        ("append_methods = [\"POST\"]", "append_methods has no effect in the git-lfs dialect"),
        ("store_method = \"PUT\"", "store_method has no effect with dialect = \"git-lfs\""),
        ("lock_suffix = \"/lock\"", "lock_suffix has no effect with dialect = \"git-lfs\""),
        ("owner_header = \"a b\"", "owner_header cannot be \"a b\""),
        ("owner_header = \"Authorization\"", "owner_header cannot be \"Authorization\""),
    ] {
        assert_eq!(problems(&repositories(added)), [expected], "added:\n{added}");
    }
    let native = problems(&format!("{BASE}owner_header = \"X-User\"\n"));
    assert_eq!(native, ["owner_header has no effect with dialect = \"native\""]);
}

#[test]
fn locks_in_memory_are_warned_of() {
    let text = repositories("").replace("kind = \"disk\"\npath = \"/var/lib/ifmatch/locks\"", "kind = \"memory\"");
    assert_eq!(warnings(&text), ["the locks of route \"documents\" end with the process: its store is the memory"]);
}
