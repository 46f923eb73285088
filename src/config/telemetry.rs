//! The `[telemetry]` table.

use std::time::Duration;

use http::Uri;
use serde_json::{Map, Value, json};

use super::{
    Tls,
    check::Check,
    client_tls::ClientTls,
    kinds::{Flag, Fraction, OneOf, PlainName, SomeOf, Table, Time},
    table::{InWords, ValueKind, section},
    units::{ms, seconds},
    words::words,
    written::{Text, Texts},
};

section! {
    /// The `[telemetry]` table: what the program reports, and where.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Telemetry of TelemetryKeys {
        /// The format of the log lines on standard error.
        log_format: LogForm = OneOf(LogForm::Text);
        /// The least severe level that is logged.
        level: LogLevel = OneOf(LogLevel::Info);
        /// True if each request gets a log line.
        access_log: bool = Flag(true);
        /// True if metrics are kept, if there is a reader for them.
        metrics: bool = Flag(true);
        /// The name of the program at the receivers of its telemetry.
        service_name: String = PlainName("ifmatch".to_owned());
        /// Further resource attributes, as names and values.
        resource: Vec<(String, String)> = AttributeList(());
        /// The share of the traces beginning here that is recorded. The default is enough to see where time goes, and
        /// too little to cost noticeable time.
        sampling: f64 = Fraction(0.01);
        /// The receiver of the telemetry.
        otlp: Otlp = Table(());
    }
}

section! {
    /// The receiver of the telemetry.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Otlp of OtlpKeys {
        /// The URL of the collector. Without one nothing is sent, unless the environment names one.
        endpoint: Option<String> = Collector(());
        /// The transport to the collector.
        protocol: OtlpProtocol = OneOf(OtlpProtocol::Grpc);
        /// The kinds of telemetry that the collector receives.
        signals: Vec<Signal> = SomeOf(&[Signal::Traces, Signal::Metrics, Signal::Logs]);
        /// The time limit for sending a batch.
        timeout: Duration = Time(seconds(10)) in ms(10)..=seconds(60);
        /// The certificates for an https collector. Without them, the authorities of the system are trusted.
        tls: Option<Tls> = ClientTls(without_tls(endpoint.as_deref()));
    }
}

/// Resource attributes, each `name=value`.
pub(super) struct AttributeList;

impl ValueKind<Vec<(String, String)>> for AttributeList {
    type Written = Option<Texts>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, list: Option<&Texts>, (): ()) -> Vec<(String, String)> {
        let attribute = |check: &mut Check<'_>, text: &Text| {
            let pair = text.get_ref().split_once('=').filter(|(name, _)| !name.trim().is_empty());
            if pair.is_none() {
                let message = format!("{key}: {:?} is not an attribute", text.get_ref());
                check.hinted(text.span(), message, "write \"deployment.environment.name=production\"");
            }
            pair.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        };
        list.map(|list| check.each(list, attribute)).unwrap_or_default()
    }
}

impl InWords for Vec<(String, String)> {
    fn shown(&self) -> Value {
        self.iter().cloned().map(|(name, value)| (name, json!(value))).collect::<Map<_, _>>().into()
    }
}

/// The URL of a collector; an empty text means no collector.
pub(super) struct Collector;

impl ValueKind<Option<String>> for Collector {
    type Written = Option<Text>;
    type Terms = ();

    fn read(check: &mut Check<'_>, key: &str, written: Option<&Text>, (): ()) -> Option<String> {
        let text = written.filter(|text| !text.get_ref().is_empty())?;
        let url = text.get_ref();
        let parsed = url.parse::<Uri>().ok().filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
        let is_url = matches!(parsed.as_ref().and_then(Uri::scheme_str), Some("http" | "https"));
        if !is_url {
            let message = format!("{key} {url:?} is not the URL of a collector");
            check.hinted(text.span(), message, "write it as http://127.0.0.1:4317, or with https");
        }
        is_url.then(|| url.clone())
    }

    /// Shows the URL without a password.
    fn show(value: &Option<String>) -> Value {
        let place = |url: &String| match (url.split_once("://"), url.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, place))) => format!("{scheme}://{place}"),
            _ => url.clone(),
        };
        json!(value.as_ref().map(place))
    }
}

/// Returns the problem with certificates for this collector. If the file names none, that of the environment may need
/// them.
fn without_tls(endpoint: Option<&str>) -> Option<(&'static str, &'static str)> {
    let is_plain = endpoint.is_some_and(|url| url.starts_with("http://"));
    is_plain
        .then_some(("otlp.tls is set, but the collector is reached without it", "begin otlp.endpoint with https://"))
}

#[cfg(test)]
impl Default for Telemetry {
    fn default() -> Self {
        super::table::of_an_empty_table()
    }
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

words! {
    LogForm { "text": Text, "json": Json }
    LogLevel { "error": Error, "warn": Warn, "info": Info, "debug": Debug, "trace": Trace }
    OtlpProtocol { "grpc": Grpc }
    Signal { "traces": Traces, "metrics": Metrics, "logs": Logs }
}
