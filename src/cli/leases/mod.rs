//! `ifmatch leases`: what an operator sees and does of leases, through the admin listener.

use std::{fmt::Write as _, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Exit, check::table, complain, print, run::fail};

mod client;

use client::{Client, Failure};

/// What is written out in a query.
const IN_QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'&').add(b'+').add(b'<').add(b'>');
const HEADINGS: [&str; 7] = ["KEY", "STATE", "HOLDER", "AGE", "REMAINING", "FENCE", "CLIENT"];

/// What `ifmatch leases` was asked for.
#[derive(Debug, Args)]
pub(super) struct LeasesOptions {
    /// The admin listener: http://host:port or unix:/path.
    #[arg(long, global = true, value_name = "URL", default_value = "http://127.0.0.1:9901")]
    admin: String,
    /// The file of its token; else the variable IFMATCH_ADMIN_TOKEN has it, if it asks for one.
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print JSON, as the admin listener gives it.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List leases.
    List {
        /// Only of resources whose keys begin with this.
        #[arg(long, value_name = "PREFIX", default_value = "")]
        prefix: String,
        /// Only in these states: leased, breaking, broken, expired; several with commas. "" is all.
        #[arg(long, value_name = "STATES", default_value = "leased,breaking")]
        state: String,
        /// Only of holders whose label contains this.
        #[arg(long, value_name = "TEXT")]
        holder: Option<String>,
    },
    /// Break the lease of a resource: its holder can write no more.
    Break {
        /// The key of the resource, as `list` shows it.
        key: String,
        /// How long its holder has to finish.
        #[arg(long, value_name = "DURATION", default_value = "0s")]
        period: String,
    },
    /// Show all that is known of a resource.
    Show {
        /// The key of the resource.
        key: String,
    },
    /// Forget what is known of a resource, or of all under a prefix: after the backend was edited by hand.
    Forget {
        /// The key of the resource.
        #[arg(required_unless_present = "prefix", conflicts_with = "prefix")]
        key: Option<String>,
        /// What the keys of the resources begin with; "" is all of them.
        #[arg(long, value_name = "PREFIX")]
        prefix: Option<String>,
    },
}

pub(super) fn execute(options: &LeasesOptions) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error, Exit::Runtime),
    };
    match runtime.block_on(act(options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure @ Failure::Address(_)) => fail(&failure, Exit::Usage),
        Err(failure) => fail(&failure, Exit::Runtime),
    }
}

async fn act(options: &LeasesOptions) -> Result<(), Failure> {
    let client = Client::new(&options.admin, options.token_file.as_deref())?;
    match &options.action {
        Action::List { prefix, state, holder } => {
            let leases = list(&client, prefix, state, holder.as_deref()).await?;
            if options.json {
                print(json!({ "leases": leases }));
            } else {
                print_table(&leases);
            }
        }
        Action::Break { key, period } => {
            let done = client.post("/leases/break", &json!({ "key": key, "period": period })).await?;
            if options.json {
                print(done);
            } else {
                print(broken(key, &done["lease"]));
            }
        }
        Action::Show { key } => {
            let record = client.get(&query("/records", &[("key", key)])).await?;
            print(if options.json { record.to_string() } else { format!("{record:#}") });
        }
        Action::Forget { key, prefix } => {
            let what = key.as_ref().map_or_else(|| json!({ "prefix": prefix }), |key| json!({ "key": key }));
            let done = forget(&client, what).await?;
            if options.json {
                print(done);
            } else {
                print_forgotten(&done);
            }
        }
    }
    Ok(())
}

/// All leases, page by page, in the order of their keys.
async fn list(client: &Client, prefix: &str, state: &str, holder: Option<&str>) -> Result<Vec<Value>, Failure> {
    let (mut leases, mut cursor) = (Vec::new(), None);
    loop {
        let mut parameters = vec![("prefix", prefix), ("state", state), ("limit", "1000")];
        parameters.extend(holder.map(|holder| ("holder", holder)));
        parameters.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let mut page = client.get(&query("/leases", &parameters)).await?;
        leases.extend(page["leases"].as_array_mut().map(std::mem::take).unwrap_or_default());
        cursor = page["cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            leases.sort_by(|one, other| one["key"].as_str().cmp(&other["key"].as_str()));
            return Ok(leases);
        }
    }
}

/// Forgets page by page.
async fn forget(client: &Client, mut what: Value) -> Result<Value, Failure> {
    let (mut forgotten, mut busy) = (0, Vec::new());
    loop {
        let mut done = client.post("/forget", &what).await?;
        forgotten += done["forgotten"].as_u64().unwrap_or_default();
        busy.extend(done["busy"].as_array_mut().map(std::mem::take).unwrap_or_default());
        match done["cursor"].take() {
            Value::Null => return Ok(json!({ "forgotten": forgotten, "busy": busy })),
            cursor => what["cursor"] = cursor,
        }
    }
}

fn query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut target = path.to_owned();
    for (number, (name, value)) in parameters.iter().enumerate() {
        let before = if number == 0 { '?' } else { '&' };
        // Writing to a string cannot fail.
        let _ = write!(target, "{before}{name}={}", utf8_percent_encode(value, IN_QUERY));
    }
    target
}

fn print_table(leases: &[Value]) {
    if leases.is_empty() {
        complain("no leases");
        return;
    }
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let time = |value: &Value, none: &str| value.as_u64().map_or_else(|| none.to_owned(), short);
    let row = |lease: &Value| {
        let (age, remaining) = (time(&lease["age_ms"], "-"), time(&lease["remaining_ms"], "for ever"));
        let [key, state, holder, client] = ["key", "state", "holder", "principal"].map(|name| text(&lease[name]));
        [key, state, holder, age, remaining, lease["fence"].to_string(), client]
    };
    for line in table(&HEADINGS.map(str::to_owned), &leases.iter().map(row).collect::<Vec<_>>()) {
        print(line);
    }
}

/// Whole seconds, as one word.
fn short(milliseconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(milliseconds / 1_000)).to_string().replace(' ', "")
}

fn broken(key: &str, lease: &Value) -> String {
    match lease["remaining_ms"].as_u64().filter(|remaining| *remaining > 0) {
        Some(remaining) => format!("the lease of {key} ends in {}", short(remaining)),
        None => format!("the lease of {key} is broken"),
    }
}

fn print_forgotten(done: &Value) {
    match done["forgotten"].as_u64() {
        Some(1) => print("forgotten: 1 record"),
        forgotten => print(format_args!("forgotten: {} records", forgotten.unwrap_or_default())),
    }
    for key in done["busy"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        print(format_args!("a write was in flight or in doubt: {key}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_holds_any_key() {
        assert_eq!(query("/records", &[("key", "a:/b c?d&e=f+g#h%")]), "/records?key=a:/b%20c?d%26e=f%2Bg%23h%25");
    }

    #[test]
    fn times_are_whole_seconds_in_one_word() {
        assert_eq!([0, 999, 61_500, 7_200_000].map(short), ["0s", "0s", "1m1s", "2h"]);
    }
}
