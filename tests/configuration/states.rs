//! Routes for states of Terraform: their defaults, and the settings that do not suit them.

use std::sync::Arc;

use ifmatch::core::policy::{AbsentLease, GuardRules, LeaseGuards, StoreMethod};

use super::{BASE, config, problems, warnings};

/// [`BASE`] with states on its route, and locks on a disk.
fn states(added: &str) -> String {
    let store = "[store]\nkind = \"disk\"\npath = \"/var/lib/ifmatch/locks\"\n";
    format!("{store}{}dialect = \"terraform\"\n{added}\n", BASE.replace("optimistic", "pessimistic"))
}

fn rules(text: &str) -> Arc<GuardRules> {
    let guard = config(text).routes.first().and_then(|route| route.guard.clone());
    guard.unwrap_or_else(|| panic!("the first route has no guard in\n{text}"))
}

#[test]
fn the_terraform_dialect_has_defaults_of_its_own() {
    let guard = rules(&states(""));
    let lease = guard.lease.as_ref().expect("locks");
    assert_eq!((lease.bind, lease.client_break, lease.infinite, lease.required), (true, true, true, false));
    assert_eq!((lease.absent, lease.guards), (AbsentLease::Allow, LeaseGuards::Write));
    assert_eq!(
        (guard.store_method, guard.lock_suffix.as_deref(), guard.append_methods.len()),
        (StoreMethod::Put, None, 0)
    );
    let chosen = rules(&states(
        "store_method = \"as-sent\"\nlock_suffix = \"/lock\"\nlease = { bind = false, absent = \"refuse\", client_break = false }",
    ));
    let lease = chosen.lease.as_ref().expect("locks");
    assert_eq!((lease.bind, lease.client_break, lease.absent), (false, false, AbsentLease::Refuse));
    assert_eq!((chosen.store_method, chosen.lock_suffix.as_deref()), (StoreMethod::AsSent, Some("/lock")));
    let native = rules(BASE);
    assert_eq!((native.store_method, native.lock_suffix.as_deref()), (StoreMethod::AsSent, None));
}

#[test]
fn each_setting_without_a_meaning_for_states_is_one_problem() {
    let idle =
        ["prefix = \"/.locks\"", "default = \"30s\"", "min = \"30s\"", "max = \"30s\"", "max_hold_time = \"2h\""];
    let idle = idle.into_iter().chain(["shared = true", "max_wait = \"1s\"", "max_waiters = 1", "linger = \"1s\""]);
    for line in idle {
        let key = line.split(' ').next().expect("a key");
        let expected = format!("lease.{key} has no effect in the terraform dialect");
        assert_eq!(problems(&states(&format!("[routes.lease]\n{line}"))), [expected]);
    }
    for (added, expected) in [
        ("lease = { guards = [\"read\", \"write\"] }", "lease.guards in the terraform dialect is [\"write\"]"),
        ("lease = { infinite = false }", "lease.infinite in the terraform dialect is true"),
        ("lease = { acquire_on_read = true }", "the terraform dialect cannot acquire a lease with a read"),
        ("lock_suffix = \"lock\"", "lock_suffix cannot be \"lock\""),
        ("lock_suffix = \"/\"", "lock_suffix cannot be \"/\""),
        ("lock_suffix = \"/a/b\"", "lock_suffix cannot be \"/a/b\""),
        ("lock_suffix = \"/l%6Fck\"", "lock_suffix cannot be \"/l%6Fck\""),
        ("store_method = \"POST\"", "store_method cannot be \"POST\""),
    ] {
        assert_eq!(problems(&states(added)), [expected], "added:\n{added}");
    }
    let defaults = format!("[defaults.lease]\nguards = [\"read\"]\n{}", states(""));
    assert_eq!(problems(&defaults), ["lease.guards in the terraform dialect is [\"write\"]"]);
    for (added, expected) in [
        ("store_method = \"PUT\"", "store_method has no effect with dialect = \"native\""),
        ("lock_suffix = \"/lock\"", "lock_suffix has no effect with dialect = \"native\""),
        ("dialect = \"terraform\"", "dialect = \"terraform\" needs policy = \"pessimistic\""),
    ] {
        assert_eq!(problems(&format!("{BASE}{added}\n")), [expected], "added:\n{added}");
    }
}

#[test]
fn locks_in_memory_are_warned_of() {
    let text = states("").replace("kind = \"disk\"\npath = \"/var/lib/ifmatch/locks\"", "kind = \"memory\"");
    assert_eq!(warnings(&text), ["the locks of route \"documents\" end with the process: its store is the memory"]);
    assert_eq!(warnings(&states("")), [""; 0]);
}
