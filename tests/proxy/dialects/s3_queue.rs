//! A queue whose jobs are the objects of a bucket.

use super::s3::S3rver;
use crate::{
    leases::next_member::job,
    operations::example_files::start_changed,
    support::{
        leases::Grant,
        raw::{put, send},
    },
};

const QUEUE: &str = "/bucket/jobs";

#[tokio::test]
async fn a_bucket_lists_the_jobs_by_pages() {
    let server = S3rver::start().await;
    let text = |text: String| {
        let text = text.replace("index = \"nginx-json\"", "index = \"s3\"");
        text.replace("\"/jobs\"", "\"/bucket/jobs\"").replace("\"/jobs/{id}\"", "\"/bucket/jobs/{id}\"")
    };
    let proxy = start_changed(server.addr, "job-queue.toml", text).await;
    let addr = proxy.addr();
    for name in ["b", "a%20b", "sub%2Fc"] {
        let target = format!("{QUEUE}/{name}").replace("%2F", "/");
        // An object that lies deeper is no job, and no route of the proxy leads there.
        let stored = put(if name.contains('/') { server.addr } else { addr }, &target, &[], name).await;
        assert!(stored.status == 200 || stored.status == 404, "{stored:?}");
    }
    let take = async || send(addr, "GET", QUEUE, &[("Lease-Duration", "30")], "").await;
    let first = take().await;
    assert_eq!((job(&first).as_str(), first.text()), ("/bucket/jobs/a%20b", "a%20b"));
    assert_eq!(job(&take().await), "/bucket/jobs/b");
    assert_eq!(take().await.status, 204);
    let receipt = Grant::of(&first).id;
    assert_eq!(send(addr, "DELETE", &job(&first), &[("Lease-Id", &receipt)], "").await.status, 204);
}
