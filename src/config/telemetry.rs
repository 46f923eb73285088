//! The `[telemetry]` table.

use std::time::Duration;

use super::{Tls, words::Word};

/// What the program tells, and to whom.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// The form of the lines on standard error.
    pub log: LogForm,
    /// From which level on there are lines.
    pub level: LogLevel,
    /// Whether each request gets one.
    pub access_log: bool,
    /// Whether metrics are kept, where anybody reads them.
    pub metrics: bool,
    /// What the program is called where its telemetry goes.
    pub service_name: String,
    /// What else tells it from others: names and values.
    pub resource: Vec<(String, String)>,
    /// How many of the traces that begin here are recorded, from 0 to 1.
    pub sampling: f64,
    /// Where telemetry is sent.
    pub otlp: Otlp,
}

impl Default for Telemetry {
    /// What holds where nothing is said.
    fn default() -> Self {
        Self {
            log: LogForm::Text,
            level: LogLevel::Info,
            access_log: true,
            metrics: true,
            service_name: "ifmatch".to_owned(),
            resource: Vec::new(),
            // Enough to see where time goes, and little enough not to be felt.
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

/// Where telemetry is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otlp {
    /// The collector's URL; without one nothing is sent, unless the environment names one.
    pub endpoint: Option<String>,
    /// How it is spoken to.
    pub protocol: OtlpProtocol,
    /// What it gets.
    pub signals: Vec<Signal>,
    /// How long a batch may take to be sent.
    pub timeout: Duration,
    /// For a collector of https; without it the authorities of the system are trusted.
    pub tls: Option<Tls>,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogForm {
    /// For people.
    Text,
    /// For programs: one JSON object a line.
    Json,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// What has failed.
    Error,
    /// And what may fail soon.
    Warn,
    /// And what goes as it should.
    Info,
    /// And what leads to that.
    Debug,
    /// Everything.
    Trace,
}

/// A kind of telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Spans of requests.
    Traces,
    /// Numbers.
    Metrics,
    /// Records.
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
