//! Collections whose next member a client can take (`members`, `index`).

use super::problems;

/// Routes of jobs and of their queue, each with these lines.
fn routes(jobs: &str, queue: &str) -> String {
    let upstream = |name: &str, port: u16| format!("[upstreams.{name}]\nservers = [\"127.0.0.1:{port}\"]\n");
    format!(
        "{}{}[[routes]]\nname = \"queue\"\npath = \"/jobs\"\nupstream = \"jobs\"\n{queue}\n\
         [[routes]]\nname = \"jobs\"\npath = \"/jobs/{{id}}\"\n{jobs}\n",
        upstream("jobs", 9000),
        upstream("other", 9001),
    )
}

const JOBS: &str = "upstream = \"jobs\"\npolicy = \"pessimistic\"\nlease.acquire_on_read = true";
const QUEUE: &str = "policy = \"optimistic\"\nmembers = \"/jobs/{id}\"";

#[test]
fn members_with_leases_that_a_read_takes_are_enough() {
    assert_eq!(problems(&routes(JOBS, QUEUE)), [""; 0]);
    for index in ["webdav", "nginx-json", "s3", "json:/jobs", "json:/jobs/*/id"] {
        assert_eq!(problems(&routes(JOBS, &format!("{QUEUE}\nindex = \"{index}\""))), [""; 0], "{index}");
    }
}

/// Routes of an account and of its containers, each with these lines.
fn account(path: &str, account: &str, containers: &str) -> String {
    let route = |name: &str, path: &str, lines: &str| {
        format!(
            "[[routes]]\nname = \"{name}\"\npath = \"{path}\"\nupstream = \"blobs\"\npolicy = \"pessimistic\"\n\
             dialect = \"azure\"\n{lines}\n"
        )
    };
    let account = route("account", path, account);
    let containers = route("containers", &format!("{}/{{container}}", path.trim_end_matches('/')), containers);
    format!("[upstreams.blobs]\nservers = [\"127.0.0.1:9000\"]\n{account}{containers}")
}

#[test]
fn the_members_of_an_account_are_containers() {
    const CONTAINERS: &str = "lease.guards = [\"delete\"]";
    let (members, of_account) = ("members = \"/{container}\"", "members = \"/{account}/{container}\"");
    for (path, members) in [("/", members), ("/{account}", of_account)] {
        assert_eq!(problems(&account(path, members, CONTAINERS)), [""; 0], "{path}");
    }
    for (lines, containers, expected) in [
        (members, "", "members names /{container}, which no route of containers matches"),
        (
            "members = \"/a/{container}\"",
            CONTAINERS,
            "members names no containers: they are directly below the path of their account",
        ),
        (&format!("{members}\nindex = \"s3\""), CONTAINERS, "index has no effect in this dialect"),
    ] {
        assert_eq!(problems(&account("/", lines, containers)), [expected], "{lines} {containers}");
    }
}

#[test]
fn members_that_nobody_could_take_are_problems() {
    let unleased = "members names resources of route \"jobs\", whose leases no read can take";
    for (jobs, queue, expected) in [
        (JOBS.replace("lease.acquire_on_read = true", ""), QUEUE.to_owned(), unleased),
        ("upstream = \"jobs\"\npolicy = \"optimistic\"".to_owned(), QUEUE.to_owned(), unleased),
        (
            "upstream = \"jobs\"\npolicy = \"last-writer-wins\"".to_owned(),
            QUEUE.to_owned(),
            "members names /jobs/{id}, which no guarded route matches",
        ),
        (
            JOBS.replace("\"jobs\"", "\"other\""),
            QUEUE.to_owned(),
            "members names resources of route \"jobs\", which has another upstream",
        ),
        (JOBS.to_owned(), format!("{QUEUE}\nobserve = true"), "members has no effect with observe = true"),
        (
            JOBS.to_owned(),
            format!("{QUEUE}\ndialect = \"s3\"\nprobe_auth = \"none\"\netag = \"upstream\""),
            "members has no effect in this dialect",
        ),
        (
            JOBS.to_owned(),
            "policy = \"last-writer-wins\"\nmembers = \"/jobs/{id}\"".to_owned(),
            "`members` has no effect on a last-writer-wins route",
        ),
        (
            JOBS.to_owned(),
            "policy = \"optimistic\"\nindex = \"s3\"".to_owned(),
            "index has no effect on a route without members",
        ),
        (JOBS.to_owned(), format!("{QUEUE}\nindex = \"json:jobs\""), "index cannot be \"json:jobs\""),
        (
            JOBS.to_owned(),
            "policy = \"optimistic\"\nmembers = \"/jobs\"".to_owned(),
            "the last segment does not name the member",
        ),
    ] {
        assert_eq!(problems(&routes(&jobs, &queue)), [expected], "{jobs} {queue}");
    }
    let own = routes(&format!("{JOBS}\nmembers = \"/jobs/{{job}}\""), "policy = \"optimistic\"");
    let problem = problems(&own);
    assert_eq!(problem, ["members leads from /jobs/{id} back to its own route"]);
}
