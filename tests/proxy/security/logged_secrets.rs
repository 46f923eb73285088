//! The secrets that no log contains, with any filter (docs/telemetry.md).

use crate::support::{backend::Backend, h2c, leases::acquire, proxy::Proxy, raw::send};

/// Rule 11: a record of a library that writes heads or frames is no way out for the secrets in them.
#[tokio::test]
async fn no_level_of_the_log_shows_credentials_lease_ids_or_queries() {
    for level in ["debug", "trace"] {
        let backend = Backend::start().await;
        backend.put("/kept/doc", "one");
        backend.put("/open/doc", "one");
        let configuration = format!(
            "[server]\n{{listen}}\n[upstreams.backend]\nservers = [\"{}\"]\n\
             [[routes]]\npath = \"/kept/{{*rest}}\"\nupstream = \"backend\"\npolicy = \"pessimistic\"\n\
             [[routes]]\npath = \"/open/{{*rest}}\"\nupstream = \"backend\"\npolicy = \"last-writer-wins\"\n",
            backend.addr()
        );
        let proxy = Proxy::start_with(&configuration, &[("RUST_LOG", level)]).await;
        let lease = acquire(proxy.addr(), "/kept/doc", "60").await;
        let fields = [
            ("Authorization", "Bearer hidden-authorization"),
            ("Cookie", "session=hidden-cookie"),
            ("X-Own", "hidden-field"),
            ("Lease-Id", lease.id.as_str()),
        ];
        for place in ["kept", "open"] {
            for method in ["GET", "PUT", "POST"] {
                send(proxy.addr(), method, &format!("/{place}/doc?token=hidden-query"), &fields, "two").await;
                let mut client = h2c::Connection::open(proxy.addr()).await;
                client.exchange(method, &format!("/{place}/doc?token=hidden-query"), &fields, "two").await;
            }
        }
        send(proxy.addr(), "GET", "/open/last", &[], "").await;
        proxy.logged(&["path=/open/last"]).await;
        let log = proxy.log();
        for secret in ["hidden-authorization", "hidden-cookie", "hidden-field", "hidden-query", &lease.id] {
            let line = log.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{level}");
        }
    }
}
