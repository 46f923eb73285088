//! The default, the minimum and the maximum of each number in the configuration.
//!
//! A value above its maximum nearly always has a wrong unit, and a minimum is the least value that the program still
//! works with. `config/ifmatch.toml` tells users the reason for each default.

use std::time::Duration;

/// A key with its default and its range, both ends included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit<T> {
    /// The key as users write it.
    pub(super) key: &'static str,
    pub(super) default: T,
    pub(super) min: T,
    pub(super) max: T,
}

const fn limit<T>(key: &'static str, default: T, min: T, max: T) -> Limit<T> {
    Limit { key, default, min, max }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

const ZERO: Duration = Duration::ZERO;
const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}
const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
const fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 3600)
}

/// 0 stands for one thread per core.
pub(super) const THREADS: Limit<usize> = limit("threads", 0, 0, 1024);
pub(super) const MAX_BODY_MEMORY: Limit<u64> = limit("max_body_memory", MIB, 0, GIB);
pub(super) const MAX_BODY_MEMORY_TOTAL: Limit<u64> = limit("max_body_memory_total", 256 * MIB, MIB, TIB);
pub(super) const MAX_BODY_SIZE: Limit<u64> = limit("max_body_size", GIB, 0, TIB);
pub(super) const MAX_SPOOL_SIZE: Limit<u64> = limit("max_spool_size", 10 * GIB, 0, 1024 * TIB);
/// The maximum keeps the reserve of descriptors small: each upload has an open file.
pub(super) const MAX_STAGED_UPLOADS: Limit<usize> = limit("max_staged_uploads", 256, 8, 4_096);
/// The maximum is Azure's limit for committed blocks.
pub(super) const MAX_STAGED_BLOCKS: Limit<usize> = limit("max_staged_blocks", 10_000, 1, 50_000);
/// The maximum is the time for which Azure keeps blocks.
pub(super) const STAGED_BLOCK_TTL: Limit<Duration> = limit("staged_block_ttl", hours(1), seconds(1), hours(24 * 7));
pub(super) const BODY_TIMEOUT: Limit<Duration> = limit("body_timeout", seconds(60), seconds(1), hours(24));
pub(super) const MAX_TARGET_SIZE: Limit<u64> = limit("max_target_size", 8 * KIB, 256, MIB);
pub(super) const MAX_CLAIM_WAITERS: Limit<usize> = limit("max_claim_waiters", 10_000, 0, 10_000_000);
pub(super) const KEEPALIVE_TIMEOUT: Limit<Duration> = limit("keepalive_timeout", seconds(60), seconds(1), hours(24));
pub(super) const HEADER_TIMEOUT: Limit<Duration> = limit("header_timeout", seconds(15), seconds(1), hours(1));
/// The maximum stays below pingora's own limit, because pingora would reject a larger head with a less helpful answer.
pub(super) const MAX_HEADER_SIZE: Limit<u64> = limit("max_header_size", 32 * KIB, KIB, MIB - KIB);
pub(super) const MAX_HEADER_MEMORY_TOTAL: Limit<u64> = limit("max_header_memory_total", 64 * MIB, MIB, TIB);
pub(super) const CLIENT_CONNECTIONS: Limit<usize> = limit("max_connections", 10_000, 1, 1_000_000);
pub(super) const CONNECTIONS_PER_CLIENT: Limit<usize> = limit("max_connections_per_client", 1_000, 1, 1_000_000);
pub(super) const SHUTDOWN_TIMEOUT: Limit<Duration> = limit("shutdown_timeout", seconds(10), ZERO, hours(1));

pub(super) const HANDSHAKE_TIMEOUT: Limit<Duration> = limit("tls.handshake_timeout", seconds(10), ms(100), seconds(60));
pub(super) const RELOAD_INTERVAL: Limit<Duration> = limit("tls.reload_interval", seconds(10), ms(100), hours(24));

pub(super) const CAPACITY: Limit<usize> = limit("capacity", 1_000_000, 1, 1_000_000_000);
pub(super) const STORE_MAX_SIZE: Limit<u64> = limit("max_size", 512 * MIB, MIB, TIB);
pub(super) const IDLE_TTL: Limit<Duration> = limit("idle_ttl", hours(24), seconds(1), hours(24 * 365));
pub(super) const STORE_TIMEOUT: Limit<Duration> = limit("timeout", seconds(2), ms(10), seconds(60));
pub(super) const START_GRACE: Limit<Duration> = limit("start_grace", ZERO, ZERO, hours(1));

pub(super) const OTLP_TIMEOUT: Limit<Duration> = limit("otlp.timeout", seconds(10), ms(10), seconds(60));

pub(super) const CONNECT_TIMEOUT: Limit<Duration> = limit("connect_timeout", seconds(1), ms(10), seconds(300));
pub(super) const UPSTREAM_TIMEOUT: Limit<Duration> = limit("timeout", seconds(30), ms(10), hours(24));
/// If the key is absent, the value of `timeout` applies.
pub(super) const LATE_WRITE_WINDOW: Limit<Duration> = limit("late_write_window", seconds(30), ZERO, hours(1));
pub(super) const REUSE_IDLE_WRITES: Limit<Duration> = limit("reuse_idle_writes", seconds(1), ZERO, hours(1));

pub(super) const WEIGHT: Limit<usize> = limit("weights", 1, 1, 100);
/// If the key is absent, the value of `timeout` applies.
pub(super) const READ_TIMEOUT: Limit<Duration> = limit("read_timeout", seconds(30), ms(10), hours(24));
/// If the key is absent, the value of `timeout` applies.
pub(super) const WRITE_TIMEOUT: Limit<Duration> = limit("write_timeout", seconds(30), ms(10), hours(24));
pub(super) const IDLE_TIMEOUT: Limit<Duration> = limit("idle_timeout", seconds(55), ZERO, hours(1));
pub(super) const MAX_CONNECTIONS: Limit<usize> = limit("max_connections", 1024, 1, 1_000_000);
pub(super) const QUEUE_MAX_WAIT: Limit<Duration> = limit("queue.max_wait", seconds(1), ZERO, seconds(300));
pub(super) const QUEUE_MAX_WAITERS: Limit<usize> = limit("queue.max_waiters", 256, 0, 100_000);
pub(super) const HEALTH_INTERVAL: Limit<Duration> = limit("health.interval", seconds(5), ms(50), hours(1));
pub(super) const HEALTH_TIMEOUT: Limit<Duration> = limit("health.timeout", seconds(1), ms(10), seconds(60));
pub(super) const HEALTHY_AFTER: Limit<usize> = limit("health.healthy_after", 2, 1, 100);
pub(super) const UNHEALTHY_AFTER: Limit<usize> = limit("health.unhealthy_after", 3, 1, 100);

pub(super) const MAX_HASH_SIZE: Limit<u64> = limit("max_hash_size", MIB, KIB, 256 * MIB);
/// If the key is absent, a body of known length has the time of `read_timeout`, and any other has the default of
/// [`GuardRules`](crate::core::policy::GuardRules).
pub(super) const HASH_WAIT: Limit<Duration> = limit("hash_wait", ms(50), ZERO, seconds(60));
pub(super) const IDENTITY_TTL: Limit<Duration> = limit("identity_ttl", seconds(600), ZERO, hours(24 * 7));
pub(super) const CLAIM_MAX_WAIT: Limit<Duration> = limit("claim.max_wait", seconds(30), ZERO, hours(1));
pub(super) const CLAIM_MAX_WAITERS: Limit<usize> = limit("claim.max_waiters", 64, 0, 100_000);
pub(super) const PROBE_TIMEOUT: Limit<Duration> = limit("probe.timeout", seconds(5), ms(10), seconds(600));
pub(super) const IDEMPOTENCY_TTL: Limit<Duration> = limit("idempotency_ttl", seconds(600), seconds(1), hours(24));

pub(super) const LEASE_REMEMBER_TIME: Limit<Duration> = limit("lease.remember_time", seconds(600), ZERO, hours(24 * 7));
pub(super) const LEASE_MAX_PER_PRINCIPAL: Limit<usize> = limit("lease.max_per_principal", 100, 1, 1_000_000);
/// If the key is absent, ten times the limit for one principal applies, but at least the default.
pub(super) const LEASE_MAX_PER_ADDRESS: Limit<usize> = limit("lease.max_per_address", 1_000, 1, 1_000_000);
pub(super) const LEASE_DEFAULT: Limit<Duration> = limit("lease.default", seconds(30), seconds(1), hours(24 * 7));
pub(super) const LEASE_MIN: Limit<Duration> = limit("lease.min", seconds(15), seconds(1), hours(24 * 7));
pub(super) const LEASE_MAX: Limit<Duration> = limit("lease.max", seconds(60), seconds(1), hours(24 * 7));
pub(super) const LEASE_MAX_WAIT: Limit<Duration> = limit("lease.max_wait", seconds(30), ZERO, hours(1));
pub(super) const LEASE_MAX_WAITERS: Limit<usize> = limit("lease.max_waiters", 64, 0, 100_000);
pub(super) const LEASE_MAX_HOLD_TIME: Limit<Duration> =
    limit("lease.max_hold_time", hours(1), seconds(1), hours(24 * 365));
