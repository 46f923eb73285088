//! `ifmatch doubts`: lists the resources that a write in doubt holds, through the admin listener.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::{
    admin_client::{AdminClient, AdminOptions, CommandFailure, execute_on_runtime, number, query, short, text},
    check::table,
    complain, print,
};

const HEADINGS: [&str; 6] = ["KEY", "SINCE", "REMAINING", "METHOD", "ROUTE", "ID"];

/// The options of `ifmatch doubts`.
#[derive(Debug, Args)]
pub(super) struct DoubtsOptions {
    #[command(flatten)]
    admin: AdminOptions,
}

pub(super) fn execute(options: &DoubtsOptions) -> ExitCode {
    execute_on_runtime(async {
        let doubts = list(&options.admin.client()?).await?;
        options.admin.show(json!({ "doubts": doubts }), || match doubts.as_slice() {
            [] => complain("no writes in doubt"),
            _ => rows(&doubts).iter().for_each(print),
        });
        Ok(())
    })
}

/// Lists all doubts, page by page, the oldest first.
async fn list(client: &AdminClient) -> Result<Vec<Value>, CommandFailure> {
    let (mut doubts, mut cursor) = (Vec::new(), None);
    loop {
        let mut parameters = vec![("limit", "1000")];
        parameters.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page = client.get(&query("/doubts", &parameters)).await?;
        doubts.extend(page.get("doubts").and_then(Value::as_array).cloned().unwrap_or_default());
        cursor = text(&page, "cursor");
        if cursor.is_none() {
            doubts.sort_by_key(|doubt| std::cmp::Reverse(number(doubt, "since_ms")));
            return Ok(doubts);
        }
    }
}

fn rows(doubts: &[Value]) -> Vec<String> {
    let row = |doubt: &Value| {
        let [key, method, route, id] = ["key", "method", "route", "request_id"]
            .map(|member| text(doubt, member).unwrap_or_else(|| "-".to_owned()));
        let [since, remaining] =
            ["since_ms", "remaining_ms"].map(|member| number(doubt, member).map_or_else(|| "-".to_owned(), short));
        [key, since, remaining, method, route, id]
    };
    table(&HEADINGS.map(str::to_owned), &doubts.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_of_another_process_has_no_request() {
        let known = json!({
            "key": "docs:/a", "since_ms": 3_000, "remaining_ms": 2_000, "request_id": "00000000000000a1",
            "method": "PUT", "route": "documents",
        });
        let elsewhere = json!({ "key": "docs:/b", "since_ms": null, "remaining_ms": 1_000, "request_id": null });
        assert_eq!(
            rows(&[known, elsewhere]),
            [
                "KEY      SINCE  REMAINING  METHOD  ROUTE      ID",
                "docs:/a  3s     2s         PUT     documents  00000000000000a1",
                "docs:/b  -      1s         -       -          -"
            ]
        );
    }
}
