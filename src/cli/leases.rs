//! `ifmatch leases`: shows and breaks leases, through the admin listener.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    admin_client::{AdminClient, AdminOptions, CommandFailure, execute_on_runtime, number, query, short, text},
    check::table,
    complain, help, print,
};

const HEADINGS: [&str; 7] = ["KEY", "STATE", "HOLDER", "AGE", "REMAINING", "FENCE", "CLIENT"];

/// The options of `ifmatch leases`.
#[derive(Debug, Args)]
pub(super) struct LeasesOptions {
    #[command(flatten)]
    admin: AdminOptions,
    #[command(subcommand)]
    action: LeaseCommand,
}

#[derive(Debug, Subcommand)]
enum LeaseCommand {
    /// List leases.
    #[command(after_help = help::LEASES_LIST)]
    List {
        /// Only leases of resources whose keys begin with this.
        #[arg(long, value_name = "PREFIX", default_value = "")]
        prefix: String,
        /// Only leases in these states, separated by commas: leased, breaking, broken, expired; "" means all.
        #[arg(long, value_name = "STATES", default_value = "leased,breaking")]
        state: String,
        /// Only leases of holders whose label contains this.
        #[arg(long, value_name = "TEXT")]
        holder: Option<String>,
    },
    /// Break the lease of a resource: its holder can write no more. Of shared leases, break all or one.
    #[command(after_help = help::LEASES_BREAK)]
    Break {
        /// The key of the resource, as `list` shows it.
        key: String,
        /// Only the lease with this fence, as `list` shows it.
        #[arg(long, value_name = "FENCE")]
        fence: Option<u64>,
        /// How long its holder has to finish.
        #[arg(long, value_name = "DURATION", default_value = "0s")]
        period: String,
    },
    /// Show everything that is known of a resource.
    #[command(after_help = help::LEASES_SHOW)]
    Show {
        /// The key of the resource.
        key: String,
    },
    /// Forget what is known of a resource, or of all under a prefix, after the backend was edited by hand.
    #[command(after_help = help::LEASES_FORGET)]
    Forget {
        /// The key of the resource.
        #[arg(required_unless_present = "prefix", conflicts_with = "prefix")]
        key: Option<String>,
        /// The prefix of the resources' keys; "" means all of them.
        #[arg(long, value_name = "PREFIX")]
        prefix: Option<String>,
    },
}

pub(super) fn execute(options: &LeasesOptions) -> ExitCode {
    execute_on_runtime(act(options))
}

async fn act(options: &LeasesOptions) -> Result<(), CommandFailure> {
    let client = options.admin.client()?;
    match &options.action {
        LeaseCommand::List { prefix, state, holder } => {
            let leases = list(&client, prefix, state, holder.as_deref()).await?;
            options.admin.show(json!({ "leases": leases }), || print_table(&leases));
        }
        LeaseCommand::Break { key, fence, period } => {
            let wish = json!({ "key": key, "fence": fence, "period": period });
            let done = client.post("/leases/break", &wish).await?;
            options.admin.show(&done, || print(broken(key, &done)));
        }
        LeaseCommand::Show { key } => {
            let record = client.get(&query("/records", &[("key", key)])).await?;
            options.admin.show(&record, || print(format_args!("{record:#}")));
        }
        LeaseCommand::Forget { key, prefix } => {
            let done = forget(&client, key.as_deref(), prefix.as_deref()).await?;
            options.admin.show(json!(done), || print_forgotten(&done));
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct LeasePage {
    leases: Vec<Value>,
    cursor: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct CommandResult {
    forgotten: u64,
    busy: Vec<String>,
    #[serde(skip_serializing)]
    cursor: Option<String>,
}

/// Lists all leases, page by page, in the order of their keys.
async fn list(
    client: &AdminClient,
    prefix: &str,
    state: &str,
    holder: Option<&str>,
) -> Result<Vec<Value>, CommandFailure> {
    let (mut leases, mut cursor) = (Vec::new(), None);
    loop {
        let mut parameters = vec![("prefix", prefix), ("state", state), ("limit", "1000")];
        parameters.extend(holder.map(|holder| ("holder", holder)));
        parameters.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page: LeasePage = read(client.get(&query("/leases", &parameters)).await?)?;
        leases.extend(page.leases);
        cursor = page.cursor;
        if cursor.is_none() {
            leases.sort_by_key(|lease| text(lease, "key"));
            return Ok(leases);
        }
    }
}

/// Forgets resources, page by page.
async fn forget(
    client: &AdminClient,
    key: Option<&str>,
    prefix: Option<&str>,
) -> Result<CommandResult, CommandFailure> {
    let mut all = CommandResult { forgotten: 0, busy: Vec::new(), cursor: None };
    loop {
        let what = json!({ "key": key, "prefix": prefix, "cursor": all.cursor });
        let done: CommandResult = read(client.post("/forget", &what).await?)?;
        all.forgotten += done.forgotten;
        all.busy.extend(done.busy);
        all.cursor = done.cursor;
        if all.cursor.is_none() {
            return Ok(all);
        }
    }
}

fn read<T: DeserializeOwned>(document: Value) -> Result<T, CommandFailure> {
    serde_json::from_value(document).map_err(|error| CommandFailure::NoAnswer(Some(error.into())))
}

fn print_table(leases: &[Value]) {
    if leases.is_empty() {
        complain("no leases");
        return;
    }
    let row = |lease: &Value| {
        let [key, state, holder, client] =
            ["key", "state", "holder", "principal"].map(|member| text(lease, member).unwrap_or_else(|| "-".to_owned()));
        let age = number(lease, "age_ms").map(short).unwrap_or_default();
        let remaining = number(lease, "remaining_ms").map_or_else(|| "for ever".to_owned(), short);
        let fence = number(lease, "fence").unwrap_or_default().to_string();
        [key, state, holder, age, remaining, fence, client]
    };
    for line in table(&HEADINGS.map(str::to_owned), &leases.iter().map(row).collect::<Vec<_>>()) {
        print(line);
    }
}

fn broken(key: &str, done: &Value) -> String {
    let leases = done.get("leases").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let what =
        if leases.len() > 1 { format!("the {} leases of {key}", leases.len()) } else { format!("the lease of {key}") };
    let (were, are, end) = if leases.len() > 1 { ("were", "are", "end") } else { ("was", "is", "ends") };
    if done.get("was_broken").and_then(Value::as_bool) == Some(true) {
        return format!("{what} {were} already broken");
    }
    let remaining = leases.iter().filter_map(|lease| number(lease, "remaining_ms")).max();
    match remaining.filter(|remaining| *remaining > 0) {
        Some(remaining) => format!("{what} {end} in {}", short(remaining)),
        None => format!("{what} {are} broken"),
    }
}

fn print_forgotten(done: &CommandResult) {
    let records = if done.forgotten == 1 { "record" } else { "records" };
    print(format_args!("forgotten: {} {records}", done.forgotten));
    for key in &done.busy {
        print(format_args!("a write was in flight or in doubt: {key}"));
    }
}
