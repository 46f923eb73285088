//! The connections to PostgreSQL, and the attempts before it counts as unavailable.

use std::{
    error::Error,
    io::{self, ErrorKind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{future::try_join_all, stream::unfold};
use tokio::{sync::Mutex, time::timeout};
use tokio_postgres::{Client, Row, error::SqlState, types::ToSql};

use super::{
    session::{PostgresAccess, Session, Standby, Unfit},
    statements::{Ask, Prepared, StatementTexts},
};
use crate::{
    config,
    core::resource::ResourceKey,
    counted::Counted,
    error_causes::causes,
    store::{
        OpenError, StoreError,
        shared::{
            batch::SENDERS,
            health::EngineHealth,
            unusable,
            waiters::{Announces, Changes},
        },
    },
};

/// The time limit of the start beyond the first connection. It is long because the first process writes a row for each
/// bucket. That takes a quarter of a second on an idle machine, and the others wait for it.
const START_MAX: Duration = Duration::from_secs(30);

/// The number of the lock that the processes take in turn while they make the tables: any number will do.
const SCHEMA_LOCK: i64 = 0x69_66_6d_61_74_63_68;

/// The errors of a connection while no server is there, or none that takes writes.
const AWAY: [ErrorKind; 8] = [
    ErrorKind::ConnectionRefused,
    ErrorKind::ConnectionReset,
    ErrorKind::HostUnreachable,
    ErrorKind::NetworkUnreachable,
    ErrorKind::NotFound,
    ErrorKind::PermissionDenied,
    ErrorKind::TimedOut,
    ErrorKind::UnexpectedEof,
];

/// A client of one PostgreSQL. A connection carries out its statements in sequence, so there is one for each batch of
/// swaps in flight. A statement takes the connection with fewer statements in flight.
pub(super) struct PostgresClient {
    access: PostgresAccess,
    texts: StatementTexts,
    /// The channel on which the keys of changed resources are announced.
    pub(super) channel: String,
    connections: [ConnectionSlot; SENDERS],
    timeout: Duration,
    health: EngineHealth,
}

/// A connection, which is opened when it is needed.
#[derive(Default)]
struct ConnectionSlot {
    current: Mutex<Option<Arc<Open>>>,
    /// The number of statements that wait for an answer.
    in_flight: AtomicUsize,
}

struct Open {
    session: Session,
    prepared: Prepared,
}

/// The answer to a statement.
pub(super) struct PostgresReply {
    pub(super) rows: Vec<Row>,
    /// True if an earlier attempt got no answer. It may have been carried out before this one or after it.
    pub(super) is_repeated: bool,
}

impl PostgresClient {
    /// Opens all connections, and makes the tables that are missing. Also returns the incarnation of the store, which is
    /// `drawn` if it has none yet.
    pub(super) async fn connect(
        settings: &config::Postgres,
        limit: Duration,
        drawn: &str,
    ) -> Result<(Self, String), OpenError> {
        let access = PostgresAccess::new(settings, limit)?;
        let texts = StatementTexts::of(&settings.schema);
        let session = timeout(limit, access.open()).await.map_err(|_elapsed| OpenError::Silent)?.map_err(unfit)?;
        let kept = timeout(START_MAX.max(limit), set_up(&session.client, &texts, drawn));
        let kept = kept.await.map_err(|_elapsed| OpenError::Silent)?.map_err(unfit)?;
        let client = Self {
            access,
            texts,
            channel: format!("ifmatch.{}", settings.schema),
            connections: Default::default(),
            timeout: limit,
            health: EngineHealth::of("PostgreSQL", limit),
        };
        // The first writes would otherwise wait for the connections, behind those of other processes.
        let open = try_join_all(client.connections.iter().map(|slot| client.open(slot)));
        timeout(START_MAX.max(limit), open).await.map_err(|_elapsed| OpenError::Silent)?.map_err(unfit)?;
        Ok((client, kept))
    }

    /// Carries out a statement, and repeats it if no answer comes. The statement must be safe to send twice.
    pub(super) async fn ask(&self, ask: Ask, values: &[&(dyn ToSql + Sync)]) -> Result<PostgresReply, StoreError> {
        let (mut attempts, mut is_repeated) = (self.health.attempts(), false);
        let in_flight = |slot: &&ConnectionSlot| slot.in_flight.load(Ordering::Relaxed);
        let Some(slot) = self.connections.iter().min_by_key(in_flight) else { return Err(StoreError::Unavailable) };
        let _in_flight = Counted::up_to(usize::MAX, &slot.in_flight);
        loop {
            let mut may_be_done = false;
            let attempt = async {
                let open = self.open(slot).await?;
                let statement = open.prepared.statement(ask).ok_or("it is not prepared")?;
                may_be_done = true;
                let answer = open.session.client.query(statement, values).await;
                let code = answer.as_ref().err().and_then(tokio_postgres::Error::code);
                may_be_done = !code.is_some_and(is_rolled_back);
                if code == Some(&SqlState::T_R_DEADLOCK_DETECTED) {
                    return Ok::<_, Unfit>(None);
                }
                Ok(Some(answer?))
            };
            let answer = attempts.make(pin!(attempt)).await?;
            match answer {
                Some(Some(rows)) => return Ok(PostgresReply { rows, is_repeated }),
                // The next attempt may come at once.
                Some(None) => {}
                None => {
                    is_repeated |= may_be_done;
                    *slot.current.lock().await = None;
                    attempts.pause().await;
                }
            }
        }
    }

    /// Returns the connection of a slot. It is opened if there is none, or the server has closed it.
    async fn open(&self, slot: &ConnectionSlot) -> Result<Arc<Open>, Unfit> {
        let mut current = slot.current.lock().await;
        if let Some(open) = current.as_ref().filter(|open| !open.session.client.is_closed()) {
            return Ok(Arc::clone(open));
        }
        let session = self.access.open().await?;
        let prepared = self.texts.prepare(&session.client).await?;
        Ok(Arc::clone(current.insert(Arc::new(Open { session, prepared }))))
    }
}

/// Makes the tables that are missing, and returns the incarnation of the store, which is `drawn` if it has none yet.
async fn set_up(client: &Client, texts: &StatementTexts, drawn: &str) -> Result<String, Unfit> {
    let last = format!("{}.floors", texts.schema);
    let found = client.query_one("SELECT to_regclass($1)::text", &[&last]).await?;
    if found.try_get::<_, Option<&str>>(0)?.is_none() {
        // Two processes that make the same table at once would both fail.
        let lock = format!("SELECT pg_advisory_xact_lock({SCHEMA_LOCK});");
        let limit = format!("SET LOCAL statement_timeout = {};", START_MAX.as_millis());
        client.batch_execute(&format!("BEGIN; {limit} {lock} {} COMMIT", texts.tables)).await?;
    }
    client.execute(&texts.draw, &[&drawn]).await?;
    Ok(client.query_one(&texts.incarnation, &[]).await?.try_get(0)?)
}

/// True if an error proves that the statement was not carried out. A server that ends may have committed it before.
fn is_rolled_back(code: &SqlState) -> bool {
    let is_of = |class| code.code().starts_with(class);
    [&SqlState::T_R_DEADLOCK_DETECTED, &SqlState::T_R_SERIALIZATION_FAILURE].contains(&code)
        || is_of("25")
        || is_of("42")
}

impl Announces for PostgresClient {
    async fn listen(&self) -> Option<Changes> {
        let listening = async {
            let (session, notifications) = self.access.connect().await?;
            session.client.batch_execute(&format!("LISTEN \"{}\"", self.channel)).await?;
            Ok::<_, tokio_postgres::Error>((session, notifications))
        };
        let open = timeout(self.timeout, listening).await.ok()?.ok()?;
        Some(Box::pin(unfold(open, async |(session, mut notifications)| {
            let notification = notifications.recv().await?;
            let key = Some(notification.payload()).filter(|key| !key.is_empty()).map(ResourceKey::from_text);
            Some((key, (session, notifications)))
        })))
    }
}

/// Tells a server that is away, or takes no writes for now, from one that cannot be used.
fn unfit(error: Unfit) -> OpenError {
    let is_away = |cause: &(dyn Error + 'static)| {
        let told = cause.downcast_ref::<tokio_postgres::Error>();
        let passes = told.is_some_and(|error| error.is_closed() || error.code().is_some_and(is_passing));
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        passes || cause.is::<Standby>() || kind.is_some_and(|kind| AWAY.contains(&kind))
    };
    if causes(&*error).any(is_away) { OpenError::Silent } else { unusable(error) }
}

/// Whether an error says what time or an operator mends: a server that starts or ends, has no connection or no disk space
/// left, or is read-only.
fn is_passing(code: &SqlState) -> bool {
    let is_of = |class| code.code().starts_with(class);
    is_of("08") || is_of("53") || is_of("57") || *code == SqlState::READ_ONLY_SQL_TRANSACTION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_time_or_an_operator_mends_is_told_from_a_wrong_configuration() {
        for code in ["08006", "53100", "53300", "57P01", "57P03", "25006"] {
            assert!(is_passing(&SqlState::from_code(code)), "{code}");
        }
        for code in ["28P01", "3D000", "42501", "25P02"] {
            assert!(!is_passing(&SqlState::from_code(code)), "{code}");
        }
    }
}
