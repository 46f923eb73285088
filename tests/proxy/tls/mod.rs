//! TLS: certificates, protocols and names, towards clients and towards upstreams.

mod tls_listeners;
mod tls_sessions;
mod tls_upstreams;
