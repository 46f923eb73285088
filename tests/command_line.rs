//! The commands that only look at a configuration, `check` and `explain`, and the exit codes (DESIGN, section 9).

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop at the first surprise")]

use std::{
    fs,
    process::{Command, Output, Stdio},
};

const MISTAKES_REPORTED: &str = include_str!("configuration/mistakes.txt");
const OPTIMISTIC: &str = include_str!("../config/optimistic.toml");
const QUICKSTART: &str = include_str!("../config/quickstart.toml");

fn ifmatch(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ifmatch")).args(arguments).output().expect("the ifmatch program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program prints UTF-8")
}

#[test]
fn check_prints_a_table_of_routes() {
    let output = ifmatch(&["check", "config/optimistic.toml"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
    let lines = text(&output.stdout)
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>();
    assert_eq!(
        lines,
        [
            "NAME HOST PATH POLICY ETAG OTHER WRITERS REQUIRE LEASES UPSTREAM",
            "documents * /documents/{id} optimistic content yes always - app (127.0.0.1:9000)",
            "collection * /documents optimistic content yes always - app (127.0.0.1:9000)",
            "drawings * /drawings/{id}/{*part} optimistic version no existing - app (127.0.0.1:9000)",
            "static * /static/{*file} last-writer-wins - - - - app (127.0.0.1:9000)",
            "documents, collection: PUT, PATCH, DELETE and MOVE need a precondition; POST and other methods pass without \
             one",
            "drawings: PUT, PATCH, DELETE and MOVE need a precondition if the resource exists; POST and other methods \
             pass without one",
            "Requests that no route matches get 404 no-route.",
        ]
    );
}

#[test]
fn check_says_nothing_of_other_paths_if_a_route_takes_them() {
    let printed = text(&ifmatch(&["check", "config/quickstart.toml"]).stdout);
    assert_eq!(printed.lines().count(), 3, "headings, a route, and its methods: {printed}");
}

#[test]
fn check_names_unguarded_routes_below_guarded_ones() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let file = directory.path().join("below.toml");
    let raw = "[[routes]]\nname = \"raw\"\npath = \"/documents/{id}/raw\"\nupstream = \"app\"\npolicy = \"last-writer-wins\"\n";
    fs::write(&file, format!("{OPTIMISTIC}{raw}")).expect("the file can be written");
    let printed = text(&ifmatch(&["check", &file.display().to_string()]).stdout);
    let expected = "raw (/documents/{id}/raw) is not guarded, and lies below documents (/documents/{id})";
    assert!(printed.lines().any(|line| line == expected), "{printed}");
}

#[test]
fn check_names_unguarded_batches_beside_guarded_routes() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let file = directory.path().join("batch.toml");
    let told = |path: &str| {
        let route = format!(
            "[[routes]]\nname = \"all\"\npath = \"{path}\"\nupstream = \"app\"\npolicy = \"last-writer-wins\"\n"
        );
        fs::write(&file, format!("{OPTIMISTIC}{route}")).expect("the file can be written");
        let printed = text(&ifmatch(&["check", &file.display().to_string()]).stdout);
        printed.lines().filter(|line| line.contains("may change")).map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = "all (/graphql) is not guarded, and its requests may change resources of guarded routes: documents \
                    (/documents/{id})";
    assert_eq!(told("/graphql"), [expected]);
    assert_eq!(told("/graphics"), [""; 0]);
}

/// One exclusive route for all paths has lists among them, whose items change them unseen.
#[test]
fn check_names_exclusive_routes_that_have_lists_and_their_items() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let file = directory.path().join("lists.toml");
    let told = |lines: &str| {
        let written = format!(
            "[upstreams.app]\nservers = [\"127.0.0.1:9000\"]\n[[routes]]\nname = \"all\"\nupstream = \"app\"\n\
             policy = \"optimistic\"\n{lines}"
        );
        fs::write(&file, written).expect("the file can be written");
        let output = ifmatch(&["check", &file.display().to_string()]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        text(&output.stdout).contains("answers lists from memory")
    };
    assert!(told("path = \"/notes/{*rest}\"\nother_writers = false"));
    assert!(!told("path = \"/notes/{*rest}\""));
    assert!(!told("path = \"/notes/{id}\"\nother_writers = false"));
    assert!(!told("path = \"/{*rest}\"\nother_writers = false\nkey = \"all\""));
    assert!(!told("path = \"/{*rest}\"\nother_writers = false\nalso_changes = [\"/notes\"]"));
    assert!(!told("path = \"/{*rest}\"\nother_writers = false\nobserve = true"));
}

#[test]
fn check_tells_what_a_lease_takes() {
    for (file, expected) in [
        ("config/worker-locks.toml", "never /.leases write 5s-1m required results"),
        ("config/job-queue.toml", "never /.leases read+write 1s-1h jobs"),
        ("config/azure-blob-pessimistic.toml", "never azure write 15s-1m|infinite blobs"),
        ("config/terraform.toml", "never terraform write infinite states"),
        ("config/git-lfs.toml", "never git-lfs write infinite objects"),
    ] {
        let output = ifmatch(&["check", file]);
        assert_eq!(output.status.code(), Some(0));
        let printed = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn check_prints_all_problems_and_ends_with_78() {
    let output = ifmatch(&["check", "tests/configuration/mistakes.toml"]);
    assert_eq!(output.status.code(), Some(78));
    assert_eq!(text(&output.stdout), "");
    let expected = MISTAKES_REPORTED.replace("mistakes.toml:", "tests/configuration/mistakes.toml:");
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn check_prints_warnings_beside_the_table() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let file = directory.path().join("open.toml");
    fs::write(&file, QUICKSTART.replace("optimistic", "last-writer-wins")).expect("the file can be written");
    let output = ifmatch(&["check", &file.display().to_string()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).starts_with("warning: "), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("NAME"));
}

#[test]
fn a_file_that_cannot_be_read_is_a_problem_of_the_configuration() {
    let output = ifmatch(&["check", "tests/configuration/nowhere.toml"]);
    assert_eq!(output.status.code(), Some(78));
    let expected = "tests/configuration/nowhere.toml: cannot be read: ";
    assert!(text(&output.stderr).starts_with(expected), "{}", text(&output.stderr));
}

#[test]
fn a_command_line_that_cannot_be_understood_ends_with_64() {
    for arguments in [
        &[][..],
        &["chekc"],
        &["check"],
        &["check", "a", "b"],
        &["explain", "config/optimistic.toml", "PUT"],
        &["explain", "config/optimistic.toml", "P T", "/"],
        &["explain", "config/optimistic.toml", "PUT", "documents"],
        &["explain", "config/optimistic.toml", "PUT", "/", "-H", "no field"],
    ] {
        let output = ifmatch(arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert_ne!(text(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn version_and_help_succeed() {
    let version = ifmatch(&["-V"]);
    assert_eq!(version.status.code(), Some(0));
    assert_eq!(text(&version.stdout), concat!("ifmatch ", env!("CARGO_PKG_VERSION"), "\n"));
    let version = ifmatch(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    let printed = text(&version.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], concat!("ifmatch ", env!("CARGO_PKG_VERSION")));
    assert!(lines[1].starts_with("commit: "), "{printed}");
    assert_eq!(lines[2..], ["stores: memory, disk, etcd, postgres, redis"]);
    assert_eq!(ifmatch(&["--help"]).status.code(), Some(0));
}

/// Returns the text of `explain` under each label.
fn explained(arguments: &[&str]) -> Vec<(String, String)> {
    let output = ifmatch(&[&["explain"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let split = |line: &str| line.split_at_checked(13).map(|(label, text)| (label.trim().to_owned(), text.to_owned()));
    text(&output.stdout).lines().map(|line| split(line).expect("a label and a text")).collect()
}

fn labelled<'a>(lines: &'a [(String, String)], label: &str) -> &'a str {
    lines.iter().find(|(each, _)| each == label).map_or("", |(_, text)| text)
}

#[test]
fn explain_tells_route_key_and_what_a_write_needs() {
    let lines = explained(&["config/optimistic.toml", "PUT", "http://docs.example.com//documents/%34%32?x=1#top"]);
    assert_eq!(labelled(&lines, "outcome").split(' ').next(), Some("400"), "{lines:?}");
    let lines = explained(&["config/optimistic.toml", "PUT", "http://docs.example.com/documents/%34%32?x=1#top"]);
    assert_eq!(labelled(&lines, "request"), "PUT docs.example.com/documents/%34%32?x=1");
    assert_eq!(labelled(&lines, "normal form"), "/documents/42");
    assert_eq!(labelled(&lines, "route"), "\"documents\" (host *, path /documents/{id}), to upstream app");
    assert_eq!(labelled(&lines, "key"), "app:/documents/42");
    assert_eq!(labelled(&lines, "method"), "PUT is a write");
    assert_eq!(labelled(&lines, "needs"), "If-Match with the current tag, or If-None-Match: * to create");
    assert!(labelled(&lines, "outcome").starts_with("428 precondition-required: read the resource"), "{lines:?}");
}

#[test]
fn explain_tells_what_else_a_write_changes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("ifmatch.toml");
    let route = "[[routes]]\nalso_changes = [\"/documents/all\"]";
    let text = include_str!("../config/optimistic.toml").replacen("[[routes]]", route, 1);
    std::fs::write(&file, text).expect("a file");
    let lines = explained(&[file.to_str().expect("UTF-8"), "PUT", "/documents/42"]);
    assert_eq!(labelled(&lines, "also changes"), "/documents/all");
}

#[test]
fn explain_tells_what_a_lease_demands() {
    let lines = explained(&["config/worker-locks.toml", "PUT", "/jobs/42/resize"]);
    assert_eq!(labelled(&lines, "key"), "results:42#resize");
    assert_eq!(labelled(&lines, "lease"), "Lease-Id, always: a lease must be taken first");
    assert_eq!(labelled(&lines, "needs"), "nothing; a precondition is judged if there is one");
    let outcome = labelled(&lines, "outcome");
    assert!(outcome.starts_with("412 lease-id-missing: "), "{outcome}");
    let lines = explained(&["config/worker-locks.toml", "GET", "/jobs/42/resize"]);
    assert_eq!(labelled(&lines, "lease"), "", "{lines:?}");
    let lines = explained(&["config/job-queue.toml", "GET", "/jobs/17"]);
    assert_eq!(labelled(&lines, "lease"), "Lease-Id while the resource is leased");
}

#[test]
fn explain_names_the_operation_of_the_azure_dialect() {
    let blob = |arguments: &[&str]| explained(&[&["config/azure-container.toml"], arguments].concat());
    let lines = blob(&["PUT", "/photos/cat?comp=lease", "-H", "x-ms-lease-action: renew"]);
    assert_eq!(labelled(&lines, "operation"), "Lease Blob");
    let lines = blob(&["PUT", "/photos/cat", "-H", "x-ms-blob-type: BlockBlob", "-H", "If-None-Match: *"]);
    assert_eq!(labelled(&lines, "lease"), "x-ms-lease-id while the resource is leased");
    assert_eq!(labelled(&lines, "outcome"), "the backend gets PUT /photos/cat, if its conditions are true");
    let lines = explained(&["config/azure-queue.toml", "GET", "/jobs/messages?numofmessages=2"]);
    assert_eq!(labelled(&lines, "operation"), "Get Messages");
    assert_eq!(labelled(&lines, "outcome"), "ifmatch sends the backend the requests that the operation needs");
    let lines = blob(&["PUT", "/photos?restype=container"]);
    assert_eq!(labelled(&lines, "operation"), "Create Container");
    assert_eq!(labelled(&lines, "outcome"), "the backend gets MKCOL /photos/, if its conditions are true");
    let lines = blob(&["PUT", "/photos/cat?comp=block&blockid=YQ=="]);
    assert_eq!(labelled(&lines, "outcome"), "the block waits in this process for the list that joins it");
    let lines = blob(&["PUT", "/photos/cat?comp=page"]);
    assert!(labelled(&lines, "outcome").starts_with("501 NotImplemented: "), "{lines:?}");
}

#[test]
fn explain_tells_what_becomes_of_a_state() {
    let state = |method: &str, target: &str| explained(&["config/terraform.toml", method, target]);
    let lines = state("LOCK", "/prod/network");
    assert_eq!(labelled(&lines, "operation"), "LOCK");
    assert_eq!(labelled(&lines, "outcome"), "the state of the lease decides");
    let lines = state("POST", "/prod/network?ID=6f0b");
    assert_eq!(labelled(&lines, "method"), "POST is a write");
    assert_eq!(labelled(&lines, "lease"), "?ID= while the resource is leased");
    assert_eq!(labelled(&lines, "sent as"), "PUT /prod/network");
    assert_eq!(
        labelled(&lines, "outcome"),
        "its lease is judged against the current state, and then its preconditions"
    );
}

#[test]
fn explain_names_the_operation_of_git_lfs() {
    let object = format!("/game/objects/4d/7a/4d7a{}", "0".repeat(60));
    for (method, target, name, outcome) in [
        ("POST", "/game/objects/batch", "Batch", "ifmatch sends the backend the requests that the operation needs"),
        ("PUT", &*object, "Upload", &*format!("the backend gets PUT {object}")),
        ("POST", "/game/locks", "Lock", "the lease is judged after the backend has been asked for the resource"),
    ] {
        let lines = explained(&["config/git-lfs.toml", method, target]);
        assert_eq!((labelled(&lines, "operation"), labelled(&lines, "outcome")), (name, outcome));
        assert!(!lines.iter().any(|(label, _)| label == "lease"), "{lines:?}");
    }
}

#[test]
fn explain_names_the_operation_on_an_entity() {
    const ENTITY: &str = "/people(PartitionKey='a',RowKey='1')";
    let lines = explained(&["config/azure-table.toml", "MERGE", ENTITY, "-H", "If-Match: *"]);
    assert_eq!(labelled(&lines, "operation"), "Merge Entity");
    let expected = format!("the backend gets MERGE {ENTITY}, if its conditions are true");
    assert_eq!(labelled(&lines, "outcome"), expected);
    let lines = explained(&["config/azure-table.toml", "DELETE", ENTITY]);
    assert!(labelled(&lines, "outcome").starts_with("400 MissingRequiredHeader: "), "{lines:?}");
}

#[test]
fn explain_names_what_is_made_for_certain_clients() {
    let lines = explained(&["config/s3.toml", "PUT", "/bucket/object"]);
    let policy = labelled(&lines, "policy");
    assert!(policy.ends_with(", dialect = \"s3\", probe_auth = \"sigv4\")"), "{policy}");
    let directory = tempfile::tempdir().expect("a directory can be made");
    let file = directory.path().join("required.toml");
    let route = "[[routes]]\nidempotency = \"required\"";
    let text = include_str!("../config/optimistic.toml").replacen("[[routes]]", route, 1);
    std::fs::write(&file, text).expect("a file");
    let write = [file.to_str().expect("UTF-8"), "PUT", "/documents/42", "-H", "If-Match: \"a\""];
    let outcome = |arguments: &[&str]| labelled(&explained(arguments), "outcome").to_owned();
    assert!(outcome(&write).starts_with("400 idempotency-key-missing: "));
    let lines = explained(&write);
    let policy = labelled(&lines, "policy");
    assert!(policy.ends_with(", idempotency = \"required\")"), "{policy}");
    let named = [&write[..], &["-H", "Idempotency-Key: \"1\""]].concat();
    assert_eq!(outcome(&named), "its preconditions are judged against the current state");
}

/// Probes without a possible signature would refuse every write.
#[test]
fn run_does_not_start_without_the_credentials_that_it_is_to_sign_with() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ifmatch"));
    command.args(["run", "config/s3.toml"]).env_remove("AWS_ACCESS_KEY_ID").env("AWS_SECRET_ACCESS_KEY", "secret");
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(78));
    let said = text(&output.stderr);
    assert!(said.contains("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") && !said.contains("secret\n"), "{said}");
}

#[test]
fn run_does_not_start_without_the_field_that_it_is_to_probe_with() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let (file, field) = (directory.path().join("field.toml"), directory.path().join("field"));
    let keys = format!("[[routes]]\nprobe_auth = \"field\"\nprobe_field_file = {field:?}");
    fs::write(&file, OPTIMISTIC.replacen("[[routes]]", &keys, 1)).expect("a file");
    let run = || Command::new(env!("CARGO_BIN_EXE_ifmatch")).arg("run").arg(&file).output().expect("it runs");
    for (content, expected) in
        [(None, "cannot be read from"), (Some("If-Match: \"a\""), "one field with the credentials of probes")]
    {
        if let Some(content) = content {
            fs::write(&field, content).expect("a file");
        }
        let output = run();
        assert_eq!(output.status.code(), Some(78), "{content:?}");
        assert!(text(&output.stderr).contains(expected), "{content:?}: {}", text(&output.stderr));
    }
}

#[test]
fn explain_judges_by_the_fields_that_it_is_given() {
    let outcome = |fields: &[&str]| {
        let fields = fields.iter().flat_map(|field| ["-H", field]).collect::<Vec<_>>();
        let lines = explained(&[&["config/optimistic.toml", "PUT", "/documents/42"], fields.as_slice()].concat());
        labelled(&lines, "outcome").to_owned()
    };
    assert_eq!(outcome(&["If-Match: \"a\""]), "its preconditions are judged against the current state");
    assert!(outcome(&["If-Match: a"]).starts_with("400 malformed-precondition: "));
    let any = outcome(&["If-Match: *"]);
    assert!(any.starts_with("428 precondition-required: ") && any.contains("only with allow_any = true"), "{any}");
    assert!(outcome(&["X-HTTP-Method: DELETE"]).starts_with("400 method-override: "));
}

#[test]
fn explain_names_the_routes_that_a_more_specific_one_was_preferred_to() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let file = directory.path().join("two.toml");
    let all = "[[routes]]\nname = \"all\"\npath = \"/{*rest}\"\nupstream = \"app\"\npolicy = \"last-writer-wins\"\n";
    fs::write(&file, format!("{OPTIMISTIC}{all}")).expect("the file can be written");
    let lines = explained(&[&file.display().to_string(), "GET", "/documents/42"]);
    assert_eq!(labelled(&lines, "why"), "it is more specific than \"all\" (host *, path /{*rest})");
    let lines = explained(&[&file.display().to_string(), "PUT", "/"]);
    assert_eq!(labelled(&lines, "route"), "\"all\" (host *, path /{*rest}), to upstream app");
    assert_eq!(labelled(&lines, "outcome"), "it passes unchanged; nothing guards this route");
    // A backend's own 404 to a request for a lease says nothing of the policy.
    let lines = explained(&[&file.display().to_string(), "POST", "/.leases/documents/42"]);
    assert!(labelled(&lines, "leases").contains("offers none"), "{lines:?}");
    let lines = explained(&[&file.display().to_string(), "POST", "/.leases/others/42"]);
    assert!(lines.iter().all(|(label, _)| label != "leases"), "{lines:?}");
}

/// Rule 18: what the operator has said of the readings of a path is shown.
#[test]
fn check_and_explain_show_how_paths_are_read() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let file = directory.path().join("readings.toml");
    let upstream = "[upstreams.app]\nservers = [\"127.0.0.1:9000\"]\nignore_case = true\n";
    let route = "[[routes]]\npath = \"/Items/{id}.json\"\nkey = \"/Items/{id}\"\nupstream = \"app\"\n\
                 policy = \"optimistic\"\nencoded_slash = \"keep\"\n";
    fs::write(&file, format!("{upstream}{route}")).expect("the file can be written");
    let lines = explained(&[&file.display().to_string(), "PUT", "/ITEMS/a%2fB.Json"]);
    assert_eq!(labelled(&lines, "reads"), "ignore_case = true, encoded_slash = \"keep\"");
    assert_eq!(labelled(&lines, "key"), "app:/items/a%2Fb");
    let output = ifmatch(&["check", &file.display().to_string()]);
    let printed = text(&output.stdout);
    assert!(printed.contains("/items/{id}.json (keeps %2F)"), "{printed}");
    assert!(printed.contains("app (127.0.0.1:9000, ignore_case)"), "{printed}");
}

#[test]
fn explain_says_that_no_route_matches() {
    let lines = explained(&["config/optimistic.toml", "GET", "/nowhere"]);
    assert!(labelled(&lines, "outcome").starts_with("404 no-route: "), "{lines:?}");
}

#[test]
fn a_closed_pipe_is_no_crash() {
    for arguments in
        [&["check", "config/optimistic.toml"][..], &["--help"], &["check", "tests/configuration/mistakes.toml"]]
    {
        let closed = || {
            let (reader, writer) = std::io::pipe().expect("a pipe can be made");
            drop(reader);
            Stdio::from(writer)
        };
        let status =
            Command::new(env!("CARGO_BIN_EXE_ifmatch")).args(arguments).stdout(closed()).stderr(closed()).status();
        let code = status.expect("the ifmatch program starts").code();
        assert_eq!(
            code,
            Some(if arguments.contains(&"tests/configuration/mistakes.toml") { 78 } else { 0 }),
            "{arguments:?}"
        );
    }
}
