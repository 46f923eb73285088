//! A collector of OTLP over gRPC: it keeps what it is sent.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::{
            ExportLogsServiceRequest, ExportLogsServiceResponse,
            logs_service_server::{LogsService, LogsServiceServer},
        },
        metrics::v1::{
            ExportMetricsServiceRequest, ExportMetricsServiceResponse,
            metrics_service_server::{MetricsService, MetricsServiceServer},
        },
        trace::v1::{
            ExportTraceServiceRequest, ExportTraceServiceResponse,
            trace_service_server::{TraceService, TraceServiceServer},
        },
    },
    common::v1::{AnyValue, KeyValue, any_value::Value},
    logs::v1::LogRecord,
    metrics::v1::{Metric, metric::Data, number_data_point},
    resource::v1::Resource,
    trace::v1::Span,
};
use tokio::{sync::oneshot, task::JoinHandle};
use tonic::{
    Request, Response, Status, async_trait,
    transport::{Identity, Server, ServerTlsConfig},
};

/// Attributes by their names, their values as text.
pub type Attributes = BTreeMap<String, String>;

#[derive(Clone, Default)]
struct Kept {
    spans: Arc<Mutex<Vec<Span>>>,
    metrics: Arc<Mutex<Vec<Metric>>>,
    logs: Arc<Mutex<Vec<LogRecord>>>,
    resources: Arc<Mutex<Vec<Resource>>>,
}

/// A running collector, which goes away when it is dropped.
pub struct Collector {
    addr: SocketAddr,
    scheme: &'static str,
    kept: Kept,
    stop: Option<oneshot::Sender<()>>,
    _server: JoinHandle<()>,
}

impl Collector {
    pub async fn start() -> Self {
        Self::on(super::ports::free()).await
    }

    /// The same at this address.
    pub async fn on(addr: SocketAddr) -> Self {
        Self::serve(addr, "http", Server::builder()).await
    }

    /// One that speaks TLS, with a certificate and its key in PEM form.
    pub async fn secure(certificate: &[u8], key: &[u8]) -> Self {
        let tls = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key));
        let server = Server::builder().tls_config(tls).expect("a certificate and its key");
        Self::serve(super::ports::free(), "https", server).await
    }

    async fn serve(addr: SocketAddr, scheme: &'static str, mut server: Server) -> Self {
        let kept = Kept::default();
        let (stop, stopped) = oneshot::channel();
        let server = server
            .add_service(TraceServiceServer::new(kept.clone()))
            .add_service(MetricsServiceServer::new(kept.clone()))
            .add_service(LogsServiceServer::new(kept.clone()));
        let server = async move {
            let _ = server.serve_with_shutdown(addr, async { drop(stopped.await) }).await;
        };
        let server = tokio::spawn(server);
        super::wait::within("the collector to listen", async {
            while tokio::net::TcpStream::connect(addr).await.is_err() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        Self { addr, scheme, kept, stop: Some(stop), _server: server }
    }

    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.addr)
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The spans that have come so far.
    pub fn spans(&self) -> Vec<Span> {
        self.kept.spans.lock().unwrap().clone()
    }

    /// The log records that have come so far.
    pub fn logs(&self) -> Vec<LogRecord> {
        self.kept.logs.lock().unwrap().clone()
    }

    /// Returns the attributes of the sender, for each message.
    pub fn resources(&self) -> Vec<Attributes> {
        self.kept.resources.lock().unwrap().iter().map(|resource| attributes(&resource.attributes)).collect()
    }

    /// The last value of a counter with these among its attributes.
    pub fn counter(&self, name: &str, with: &[(&str, &str)]) -> Option<i64> {
        let metrics = self.kept.metrics.lock().unwrap();
        let points = metrics.iter().filter(|metric| metric.name == name).filter_map(|metric| match &metric.data {
            Some(Data::Sum(sum)) => Some(&sum.data_points),
            Some(Data::Gauge(gauge)) => Some(&gauge.data_points),
            _ => None,
        });
        let mut matching = points.flatten().filter(|point| has(&attributes(&point.attributes), with));
        matching.next_back().and_then(|point| match point.value {
            Some(number_data_point::Value::AsInt(value)) => Some(value),
            _ => None,
        })
    }

    /// The last count of a histogram with these among its attributes.
    pub fn count(&self, name: &str, with: &[(&str, &str)]) -> Option<u64> {
        let metrics = self.kept.metrics.lock().unwrap();
        let points = metrics.iter().filter(|metric| metric.name == name).filter_map(|metric| match &metric.data {
            Some(Data::Histogram(histogram)) => Some(&histogram.data_points),
            _ => None,
        });
        points.flatten().rfind(|point| has(&attributes(&point.attributes), with)).map(|point| point.count)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
    }
}

/// True if these are among them.
pub fn has(attributes: &Attributes, with: &[(&str, &str)]) -> bool {
    with.iter().all(|(name, value)| attributes.get(*name).is_some_and(|found| found == value))
}

pub fn attributes(list: &[KeyValue]) -> Attributes {
    list.iter().map(|pair| (pair.key.clone(), text(pair.value.as_ref()))).collect()
}

pub fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        other => format!("{other:?}"),
    }
}

#[async_trait]
impl TraceService for Kept {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for sent in request.into_inner().resource_spans {
            self.resources.lock().unwrap().extend(sent.resource);
            self.spans.lock().unwrap().extend(sent.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[async_trait]
impl MetricsService for Kept {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        for sent in request.into_inner().resource_metrics {
            self.resources.lock().unwrap().extend(sent.resource);
            self.metrics.lock().unwrap().extend(sent.scope_metrics.into_iter().flat_map(|scope| scope.metrics));
        }
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

#[async_trait]
impl LogsService for Kept {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        for sent in request.into_inner().resource_logs {
            self.resources.lock().unwrap().extend(sent.resource);
            self.logs.lock().unwrap().extend(sent.scope_logs.into_iter().flat_map(|scope| scope.log_records));
        }
        Ok(Response::new(ExportLogsServiceResponse::default()))
    }
}
