//! The statements that the store makes. Each is a transaction of its own.

use tokio_postgres::{Client, Error, Statement};

/// Milliseconds since 1970, by the clock of the server.
const NOW: &str = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The texts of the statements, in the order of [`Ask`].
const TEXTS: [&str; 10] = [
    include_str!("sql/read.sql"),
    include_str!("sql/update.sql"),
    include_str!("sql/swap.sql"),
    include_str!("sql/clock.sql"),
    include_str!("sql/page.sql"),
    include_str!("sql/aged.sql"),
    include_str!("sql/forget.sql"),
    include_str!("sql/raise.sql"),
    include_str!("sql/count.sql"),
    include_str!("sql/below.sql"),
];

/// Makes the tables that are missing.
const TABLES: &str = include_str!("sql/schema.sql");

/// Notes the incarnation that the first process draws.
const DRAW: &str = "INSERT INTO {schema}.store (incarnation) VALUES ($1) ON CONFLICT DO NOTHING";

/// Reads the incarnation.
const INCARNATION: &str = "SELECT incarnation FROM {schema}.store";

/// A prepared statement. The files in `sql` say what each one takes and returns.
#[derive(Clone, Copy)]
pub(super) enum Ask {
    Read,
    Update,
    Swap,
    Clock,
    Page,
    Aged,
    Forget,
    Raise,
    Count,
    Below,
}

/// The texts of the statements for one schema.
pub(super) struct StatementTexts {
    pub(super) schema: String,
    pub(super) tables: String,
    pub(super) draw: String,
    pub(super) incarnation: String,
    statements: Vec<String>,
}

impl StatementTexts {
    /// Makes the texts for the schema with this name, which is a plain identifier.
    pub(super) fn of(schema: &str) -> Self {
        let schema = format!("\"{schema}\"");
        // Null before the first number.
        let last = format!("COALESCE(pg_sequence_last_value('{schema}.revisions'::regclass), 0)");
        let text = |text: &str| text.replace("{schema}", &schema).replace("{now}", NOW).replace("{last}", &last);
        Self {
            tables: text(TABLES),
            draw: text(DRAW),
            incarnation: text(INCARNATION),
            statements: TEXTS.map(text).to_vec(),
            schema,
        }
    }

    /// Prepares all statements on one connection.
    pub(super) async fn prepare(&self, client: &Client) -> Result<Prepared, Error> {
        let mut prepared = Vec::with_capacity(self.statements.len());
        for text in &self.statements {
            prepared.push(client.prepare(text).await?);
        }
        Ok(Prepared(prepared))
    }
}

/// The statements that were prepared on one connection.
pub(super) struct Prepared(Vec<Statement>);

impl Prepared {
    pub(super) fn statement(&self, ask: Ask) -> Option<&Statement> {
        self.0.get(ask as usize)
    }
}
