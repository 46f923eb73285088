//! Exporters that log the failure of their collector once, and its recovery once: batches leave every few seconds.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    logs::{LogBatch, LogExporter},
    metrics::{Temporality, data::ResourceMetrics, exporter::PushMetricExporter},
    trace::{SpanData, SpanExporter},
};

/// An exporter that logs each change between success and failure once.
#[derive(Debug)]
pub(super) struct LogOnce<E> {
    exporter: E,
    /// The kind of data that it exports.
    what: &'static str,
    is_failing: AtomicBool,
}

impl<E> LogOnce<E> {
    /// Wraps an exporter of this kind of data.
    pub(super) const fn new(exporter: E, what: &'static str) -> Self {
        Self { exporter, what, is_failing: AtomicBool::new(false) }
    }

    fn told(&self, result: OTelSdkResult) -> OTelSdkResult {
        match &result {
            Err(error) if !self.is_failing.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, "the collector takes no {}: data that it does not take is dropped", self.what);
            }
            Ok(()) if self.is_failing.swap(false, Ordering::Relaxed) => {
                tracing::info!("the collector takes {} again", self.what);
            }
            Ok(()) | Err(_) => {}
        }
        result
    }
}

impl<E: SpanExporter> SpanExporter for LogOnce<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.told(self.exporter.export(batch).await)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: LogExporter> LogExporter for LogOnce<E> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        self.told(self.exporter.export(batch).await)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl PushMetricExporter for LogOnce<MetricExporter> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.told(self.exporter.export(metrics).await)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}
