//! The `[telemetry]` table.

use std::time::Duration;

use super::{Tls, words::Word};

/// The `[telemetry]` table: what the program reports, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// The format of the log lines on standard error.
    pub log_format: LogForm,
    /// The least severe level that is logged.
    pub level: LogLevel,
    /// Whether each request gets a log line.
    pub access_log: bool,
    /// Whether metrics are kept, if there is a reader for them.
    pub metrics: bool,
    /// The name of the program at the receivers of its telemetry.
    pub service_name: String,
    /// Further resource attributes, as names and values.
    pub resource: Vec<(String, String)>,
    /// The share of the traces beginning here that is recorded, from 0 to 1.
    pub sampling: f64,
    /// The receiver of the telemetry.
    pub otlp: Otlp,
}

impl Default for Telemetry {
    /// The settings for a file without a `[telemetry]` table.
    fn default() -> Self {
        Self {
            log_format: LogForm::Text,
            level: LogLevel::Info,
            access_log: true,
            metrics: true,
            service_name: "ifmatch".to_owned(),
            resource: Vec::new(),
            // Enough to see where time goes, and too little to cost noticeable time.
            sampling: 0.01,
            otlp: Otlp {
                endpoint: None,
                protocol: OtlpProtocol::Grpc,
                signals: vec![Signal::Traces, Signal::Metrics, Signal::Logs],
                timeout: Duration::from_secs(10),
                tls: None,
            },
        }
    }
}

/// The receiver of the telemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otlp {
    /// The URL of the collector. Without one nothing is sent, unless the environment names one.
    pub endpoint: Option<String>,
    /// The transport to the collector.
    pub protocol: OtlpProtocol,
    /// The kinds of telemetry that the collector receives.
    pub signals: Vec<Signal>,
    /// The time limit for sending a batch.
    pub timeout: Duration,
    /// The certificates for an https collector; if `None`, the authorities of the system are trusted.
    pub tls: Option<Tls>,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogForm {
    /// Text for people.
    Text,
    /// One JSON object a line, for programs.
    Json,
}

/// The least severe level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Failures.
    Error,
    /// Also signs of a coming failure.
    Warn,
    /// Also normal events.
    Info,
    /// Also the steps behind these events.
    Debug,
    /// Everything.
    Trace,
}

/// A kind of telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Spans of requests.
    Traces,
    /// Measurements.
    Metrics,
    /// Log records.
    Logs,
}

/// A transport of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// gRPC.
    Grpc,
}

impl Word for LogForm {
    const WORDS: &'static [(&'static str, Self)] = &[("text", Self::Text), ("json", Self::Json)];
}

impl Word for LogLevel {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];
}

impl Word for Signal {
    const WORDS: &'static [(&'static str, Self)] =
        &[("traces", Self::Traces), ("metrics", Self::Metrics), ("logs", Self::Logs)];
}

impl Word for OtlpProtocol {
    const WORDS: &'static [(&'static str, Self)] = &[("grpc", Self::Grpc)];
    const LATER: &'static [&'static str] = &["http/protobuf", "http/json"];
}
