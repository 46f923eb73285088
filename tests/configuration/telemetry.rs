//! Telemetry in the configuration.

use std::time::Duration;

use ifmatch::config::{LogForm, LogLevel, Otlp, OtlpProtocol, Signal, Telemetry, Tls};

use super::{BASE, config, problems};

fn mistakes(lines: &str) -> Vec<String> {
    problems(&format!("{BASE}[telemetry]\n{lines}\n"))
}

#[test]
fn what_is_said_of_telemetry_is_what_it_is() {
    let lines = "log_format = \"json\"\nlevel = \"debug\"\naccess_log = false\nmetrics = false\nservice_name = \"docs\"\n\
                 resource = [\"zone = a=b\"]\nsampling = 1\n\
                 otlp = { endpoint = \"https://collector:4317\", signals = [\"logs\"], timeout = \"1s\", \
                 tls = { ca = \"/ca.pem\" } }";
    let expected = Telemetry {
        log_format: LogForm::Json,
        level: LogLevel::Debug,
        access_log: false,
        metrics: false,
        service_name: "docs".to_owned(),
        resource: vec![("zone".to_owned(), "a=b".to_owned())],
        sampling: 1.0,
        otlp: Otlp {
            endpoint: Some("https://collector:4317".to_owned()),
            protocol: OtlpProtocol::Grpc,
            signals: vec![Signal::Logs],
            timeout: Duration::from_secs(1),
            tls: Some(Tls { ca: Some("/ca.pem".into()), identity: None }),
        },
    };
    assert_eq!(config(&format!("{BASE}[telemetry]\n{lines}\n")).telemetry, expected);
    let without = config(BASE).telemetry;
    assert_eq!((without.log_format, without.level, without.access_log), (LogForm::Text, LogLevel::Info, true));
    assert_eq!((without.service_name.as_str(), without.resource, without.sampling), ("ifmatch", Vec::new(), 0.01));
    assert_eq!((without.metrics, without.otlp.endpoint, without.otlp.tls), (true, None, None));
    assert_eq!(without.otlp.signals, [Signal::Traces, Signal::Metrics, Signal::Logs]);
}

#[test]
fn what_telemetry_cannot_be_is_said() {
    for (lines, problem) in [
        ("log_format = \"xml\"", "log_format cannot be \"xml\""),
        ("level = \"loud\"", "level cannot be \"loud\""),
        ("sampling = 1.5", "sampling is 1.5"),
        ("sampling = -0.1", "sampling is -0.1"),
        ("service_name = \"\"", "service_name is \"\": a name has no blanks and is not empty"),
        ("resource = [\"production\"]", "resource: \"production\" is not an attribute"),
        ("otlp = { endpoint = \"collector:4317\" }", "otlp.endpoint \"collector:4317\" is not the URL of a collector"),
        (
            "otlp = { endpoint = \"http://collector:4317\", tls = { ca = \"/ca.pem\" } }",
            "otlp.tls is set, but the collector is reached without it",
        ),
        ("otlp = { tls = { cert = \"/cert.pem\" } }", "otlp.tls.cert and otlp.tls.key belong together"),
        ("otlp = { protocol = \"http/protobuf\" }", "otlp.protocol cannot be \"http/protobuf\""),
        ("otlp = { signals = [\"spans\"] }", "otlp.signals cannot be \"spans\""),
        ("otlp = { timeout = \"2m\" }", "otlp.timeout is 2m, the limit is 1m"),
    ] {
        assert_eq!(mistakes(lines), [problem], "{lines}");
    }
}
