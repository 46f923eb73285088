//! The `[telemetry]` table.

use http::Uri;

use super::{
    super::{
        Otlp, Telemetry, limits,
        raw::{self, Ratio, Text},
    },
    check::Check,
    shared::client_tls,
};

pub(super) fn telemetry(check: &mut Check<'_>, raw: &raw::Telemetry) -> Telemetry {
    let default = Telemetry::default();
    Telemetry {
        log_format: check.word("log_format", raw.log_format.as_ref()).unwrap_or(default.log_format),
        level: check.word("level", raw.level.as_ref()).unwrap_or(default.level),
        access_log: raw.access_log.as_ref().map_or(default.access_log, |flag| *flag.get_ref()),
        metrics: raw.metrics.as_ref().map_or(default.metrics, |flag| *flag.get_ref()),
        service_name: raw.service_name.as_ref().map_or(default.service_name, |name| {
            check.name("service_name", name);
            name.get_ref().clone()
        }),
        resource: raw.resource.as_ref().map(|list| check.each(list, attribute)).unwrap_or_default(),
        sampling: raw.sampling.as_ref().map_or(default.sampling, |ratio| sampling(check, ratio)),
        otlp: otlp(check, &raw.otlp, default.otlp),
    }
}

fn otlp(check: &mut Check<'_>, raw: &raw::Otlp, default: Otlp) -> Otlp {
    let endpoint = raw.endpoint.as_ref().and_then(|text| endpoint(check, text));
    // If the file names no endpoint, the endpoint of the environment may need the certificates.
    let is_plain = endpoint.as_ref().is_some_and(|url| url.starts_with("http://"));
    let unused = ("otlp.tls is set, but the collector is reached without it", "begin otlp.endpoint with https://");
    Otlp {
        endpoint,
        protocol: check.word("otlp.protocol", raw.protocol.as_ref()).unwrap_or(default.protocol),
        signals: raw
            .signals
            .as_ref()
            .map_or(default.signals, |list| check.each(list, |check, text| check.word("otlp.signals", Some(text)))),
        timeout: check.duration(raw.timeout.as_ref(), limits::OTLP_TIMEOUT),
        tls: client_tls(check, "otlp.tls", &raw.tls, is_plain.then_some(unused)),
    }
}

fn sampling(check: &mut Check<'_>, value: &Ratio) -> f64 {
    let ratio = *value.get_ref();
    if !(0.0..=1.0).contains(&ratio) {
        check.hinted(value.span(), format!("sampling is {ratio}"), "it is from 0 (no trace) to 1 (every trace)");
    }
    ratio
}

/// Reads a resource attribute, `name=value`.
fn attribute(check: &mut Check<'_>, text: &Text) -> Option<(String, String)> {
    let pair = text.get_ref().split_once('=').filter(|(name, _)| !name.trim().is_empty());
    if pair.is_none() {
        let message = format!("resource: {:?} is not an attribute", text.get_ref());
        check.hinted(text.span(), message, "write \"deployment.environment.name=production\"");
    }
    pair.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
}

/// Reads the URL of a collector; an empty text means no collector.
fn endpoint(check: &mut Check<'_>, text: &Text) -> Option<String> {
    let url = text.get_ref();
    if url.is_empty() {
        return None;
    }
    let parsed = url.parse::<Uri>().ok().filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
    let is_url = matches!(parsed.as_ref().and_then(Uri::scheme_str), Some("http" | "https"));
    if !is_url {
        let message = format!("otlp.endpoint {url:?} is not the URL of a collector");
        check.hinted(text.span(), message, "write it as http://127.0.0.1:4317, or with https");
    }
    is_url.then(|| url.clone())
}
