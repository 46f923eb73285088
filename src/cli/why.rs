//! `ifmatch why`: tells why a request was refused, through the admin listener.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::{
    admin_client::{AdminOptions, CommandFailure, execute_on_runtime, number, query, short, text},
    check::table,
    complain, print,
};
use crate::core::cause::RequestId;

const HEADINGS: [&str; 6] = ["TIME", "ID", "REQUEST", "STATUS", "CODE", "REASON"];

/// The options of `ifmatch why`.
#[derive(Debug, Args)]
pub(super) struct WhyOptions {
    #[command(flatten)]
    admin: AdminOptions,
    /// The id of the request: `request_id` in the access log, or `instance`, `x-amz-request-id` or `x-ms-request-id` in
    /// the answer. Without it, list the last refusals.
    #[arg(conflicts_with = "key")]
    id: Option<String>,
    /// List only the last refusals of the resource with this key, as the access log shows it.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

pub(super) fn execute(options: &WhyOptions) -> ExitCode {
    execute_on_runtime(act(options))
}

async fn act(options: &WhyOptions) -> Result<(), CommandFailure> {
    let client = options.admin.client()?;
    if let Some(id) = &options.id {
        // The listener says how an id is written, so it gets a word that is none.
        let id = RequestId::parse(id).map_or_else(|| "none".to_owned(), |id| id.to_string());
        let refusal = client.get(&format!("/refusals/{id}")).await?;
        options.admin.show(&refusal, || story(&refusal).iter().for_each(print));
        return Ok(());
    }
    let parameters: Vec<_> = options.key.as_deref().map(|key| ("key", key)).into_iter().collect();
    let document = client.get(&query("/refusals", &parameters)).await?;
    let refusals = document.get("refusals").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    options.admin.show(&document, || match refusals {
        [] => complain("no refusals"),
        _ => timeline(refusals).iter().for_each(print),
    });
    Ok(())
}

/// Returns a table of refusals, the latest at its end.
fn timeline(refusals: &[Value]) -> Vec<String> {
    let row = |refusal: &Value| {
        let [at, id, code] = ["at", "id", "code"].map(|member| text(refusal, member).unwrap_or_default());
        let reason = text(refusal, "reason").unwrap_or_else(|| "-".to_owned());
        let status = number(refusal, "status").unwrap_or_default().to_string();
        [at, id, request(refusal), status, code, reason]
    };
    table(&HEADINGS.map(str::to_owned), &refusals.iter().rev().map(row).collect::<Vec<_>>())
}

/// Tells a refusal in five lines: the answer, its place, the request's tags, the state of the resource, the remedy. The
/// last also names the setting with which the request would have passed.
fn story(refusal: &Value) -> [String; 5] {
    let [code, at, detail] = ["code", "at", "detail"].map(|member| text(refusal, member).unwrap_or_default());
    let reason = text(refusal, "reason").map(|reason| format!(" ({reason})")).unwrap_or_default();
    let [status, age] = ["status", "age_ms"].map(|member| number(refusal, member).unwrap_or_default());
    let age = short(age);
    let setting = text(refusal, "saved_by")
        .map(|setting| format!("; with {setting} on the route it would have passed"))
        .unwrap_or_default();
    let sent = text(refusal, "sent_tag").map_or_else(|| "no tag to judge".to_owned(), |tag| format!("tag {tag}"));
    [
        format!("asked:  {}; refused with {status} {code}{reason} at {at}, {age} ago", request(refusal)),
        format!("where:  {}", place(refusal)),
        format!("sent:   {sent}"),
        format!("found:  {}", found(refusal)),
        format!("remedy: {detail}{setting}"),
    ]
}

fn request(refusal: &Value) -> String {
    let [method, path] = ["method", "path"].map(|member| text(refusal, member).unwrap_or_default());
    format!("{method} {path}")
}

fn place(refusal: &Value) -> String {
    let Some(route) = text(refusal, "route") else { return "no route".to_owned() };
    let policy = text(refusal, "policy").unwrap_or_default();
    let key = text(refusal, "key").map(|key| format!(", resource {key}")).unwrap_or_default();
    format!("route {route} ({policy}){key}")
}

/// Returns what the verdict rested on.
fn found(refusal: &Value) -> String {
    let change = refusal.get("last_change").filter(|change| change.is_object()).map(|change| {
        let trace = text(change, "trace_id").map(|id| format!(" (trace {id})")).unwrap_or_default();
        let is_unread = change.get("is_unread").and_then(Value::as_bool) == Some(true);
        let unread = if is_unread { ", and this client has not read it through this process since" } else { "" };
        let age = short(number(change, "age_ms").unwrap_or_default());
        format!("last changed through ifmatch {age} before{trace}{unread}")
    });
    let doubt = refusal.get("doubt").filter(|doubt| doubt.is_object()).map(|doubt| {
        let [method, id] = ["method", "request_id"].map(|member| text(doubt, member).unwrap_or_default());
        let age = short(number(doubt, "age_ms").unwrap_or_default());
        format!("a {method} {age} before is in doubt (ifmatch why {id})")
    });
    let lease = refusal.get("lease").filter(|lease| lease.is_object()).map(|lease| {
        let holder =
            text(lease, "holder").map_or_else(|| "a holder without a label".to_owned(), |holder| format!("{holder:?}"));
        let left = number(lease, "remaining_ms")
            .map_or_else(|| "without an end".to_owned(), |left| format!("for {} more", short(left)));
        format!("leased by {holder} {left}")
    });
    let facts = [
        text(refusal, "current_tag").map(|tag| format!("current tag {tag}")),
        change,
        number(refusal, "probe_status").map(|status| format!("the upstream answered the probe with {status}")),
        lease,
        text(refusal, "untagged").map(|why| format!("an earlier read by the client got no tag: {why}")),
        refusal
            .get("in_doubt")
            .filter(|doubt| **doubt == true)
            .map(|_| "the outcome of the write is unknown".to_owned()),
        doubt,
        number(refusal, "retry_after_ms").map(|after| format!("a retry may succeed {} later", short(after))),
    ];
    let facts = facts.into_iter().flatten().collect::<Vec<_>>();
    if facts.is_empty() { "the code says it all".to_owned() } else { facts.join("; ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_is_told_in_five_lines() {
        let refusal = json!({
            "id": "00000000000000a1", "at": "2026-01-02T03:04:05.678Z", "age_ms": 12_000,
            "method": "PUT", "path": "/docs/42", "route": "documents", "policy": "optimistic", "key": "docs:/docs/42",
            "trace_id": null, "status": 412, "code": "precondition-failed", "reason": "stale-tag",
            "detail": "read it again", "in_doubt": false, "retry_after_ms": null,
            "sent_tag": "\"a\"", "current_tag": "\"b\"", "last_change": { "age_ms": 61_000, "trace_id": "77", "is_unread": false },
            "probe_status": 200, "lease": null, "untagged": null, "saved_by": null, "doubt": null,
        });
        let told = [
            "asked:  PUT /docs/42; refused with 412 precondition-failed (stale-tag) at 2026-01-02T03:04:05.678Z, 12s \
             ago",
            "where:  route documents (optimistic), resource docs:/docs/42",
            "sent:   tag \"a\"",
            "found:  current tag \"b\"; last changed through ifmatch 1m1s before (trace 77); the upstream answered the \
             probe with 200",
            "remedy: read it again",
        ];
        assert_eq!(story(&refusal), told);
    }

    #[test]
    fn a_lease_is_told_with_its_holder_and_its_end() {
        let fixed = json!({ "lease": { "holder": "ann", "remaining_ms": 9_000 }, "retry_after_ms": 9_000 });
        assert_eq!(found(&fixed), "leased by \"ann\" for 9s more; a retry may succeed 9s later");
        let infinite = json!({ "lease": { "holder": null, "remaining_ms": null }, "in_doubt": true });
        assert_eq!(
            found(&infinite),
            "leased by a holder without a label without an end; the outcome of the write is unknown"
        );
        assert_eq!(found(&json!({})), "the code says it all");
        assert_eq!(place(&json!({ "route": null })), "no route");
    }

    #[test]
    fn what_the_client_has_not_read_and_what_would_have_saved_its_request_are_told() {
        let unread = json!({ "last_change": { "age_ms": 2_000, "trace_id": null, "is_unread": true } });
        let told = "last changed through ifmatch 2s before, and this client has not read it through this process since";
        assert_eq!(found(&unread), told);
        let weak = json!({ "detail": "send the tag as it was issued", "saved_by": "accept_weak_own = true" });
        let [.., remedy] = story(&weak);
        let told =
            "remedy: send the tag as it was issued; with accept_weak_own = true on the route it would have passed";
        assert_eq!(remedy, told);
        let doubt = json!({ "doubt": { "method": "PUT", "request_id": "00000000000000a1", "age_ms": 3_000 } });
        assert_eq!(found(&doubt), "a PUT 3s before is in doubt (ifmatch why 00000000000000a1)");
    }

    #[test]
    fn a_timeline_ends_with_the_latest() {
        let refusal = |id: &str, reason| {
            json!({
            "at": "t", "id": id, "method": "PUT", "path": "/a", "status": 409, "code": "c", "reason": reason })
        };
        let lines = timeline(&[refusal("2", None), refusal("1", Some("r"))]);
        assert_eq!(
            lines,
            [
                "TIME  ID  REQUEST  STATUS  CODE  REASON",
                "t     1   PUT /a   409     c     r",
                "t     2   PUT /a   409     c     -"
            ]
        );
    }
}
