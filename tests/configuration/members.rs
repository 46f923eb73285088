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
