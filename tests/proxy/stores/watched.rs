//! A watch at one proxy reports changes that come through another one.

use super::shared_store::{addrs, pair};
use crate::support::{
    backend::Backend,
    engines::Engine,
    events::Events,
    leases::{acquire, leasing_versions, put_with, release},
    raw::get,
};

const DOC: &str = "/doc";

#[tokio::test]
async fn a_watch_tells_what_comes_through_another_proxy() {
    for engine in Engine::all().await {
        let backend = Backend::start().await;
        backend.put(DOC, "one");
        let proxies = pair(&engine, leasing_versions(&backend).route("watch = true\nlease.auth = \"none\"")).await;
        let [one, other] = addrs(&proxies);
        let mut events = Events::open(one, "/.watch/doc", &[]).await;
        events.expect("state").await;
        let grant = acquire(other, DOC, "30").await;
        let acquired = events.expect("lease").await;
        assert_eq!((&acquired.data["change"], &acquired.data["fence"]), (&"acquired".into(), &grant.fence.into()));
        assert_eq!(put_with(other, DOC, &grant.id, "two").await.status, 204);
        assert_eq!(events.expect("changed").await.data["etag"], get(one, DOC).await.etag(), "{}", engine.name());
        release(other, DOC, &grant.id).await;
        assert_eq!(events.expect("lease").await.data["change"], "released", "{}", engine.name());
        acquire(other, DOC, "1").await;
        for step in ["acquired", "expired"] {
            assert_eq!(events.expect("lease").await.data["change"], step, "{}", engine.name());
        }
    }
}
