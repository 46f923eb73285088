//! A store that has lost acknowledged changes, because an earlier copy of it was restored.

use crate::support::{
    backend::Backend,
    engines::Engine,
    events::Events,
    leases::{IDS, lease, leasing_versions, put_with},
    raw::{get, send},
    wait::within,
};

const DOC: &str = "/doc";

/// Rules 12 and 15: the copy shows a free lease, and gives the last fences again. No grant and no write relies on it, and
/// the holder learns that its lease is not sure any more.
#[tokio::test]
async fn a_proxy_that_has_seen_a_lost_grant_refuses_grants_and_writes() {
    for mut engine in Engine::all().await {
        let backend = Backend::start().await;
        backend.put(DOC, "one");
        let proxy = leasing_versions(&backend).store(&engine.store()).start().await;
        let addr = proxy.addr();
        assert!(get(addr, DOC).await.header("etag").is_some());
        engine.signal("KILL");
        engine.back_up().await;
        engine.restart().await;
        let answers = async { while get(addr, DOC).await.header("etag").is_none() {} };
        within("the store to answer again", answers).await;

        let wanted = [("Lease-Id", IDS[0]), ("Lease-Duration", "2")];
        let mut holder = Events::post(addr, "/.leases/doc", &wanted).await;
        holder.expect("granted").await;
        assert_eq!(put_with(addr, DOC, IDS[0], "two").await.status, 204, "{}", engine.name());
        engine.signal("KILL");
        engine.restore().await;
        assert_eq!(holder.expect("lost").await.data["reason"], "unknown", "{}", engine.name());

        let writes = backend.count("PUT", DOC);
        let until_noticed =
            async { while send(addr, "PUT", DOC, &[], "four").await.header("retry-after").is_some() {} };
        within("the loss to be noticed", until_noticed).await;
        for refused in [
            lease(addr, "POST", DOC, &[("Lease-Duration", "30")]).await,
            put_with(addr, DOC, IDS[0], "three").await,
            send(addr, "PUT", DOC, &[], "four").await,
        ] {
            refused.refused(503, "store-unavailable");
            assert!(refused.header("retry-after").is_none(), "time repairs nothing: {refused:?}");
        }
        assert_eq!(backend.count("PUT", DOC), writes, "refused means untouched");
        let read = get(addr, DOC).await;
        assert_eq!((read.status, read.header("etag")), (200, None), "{read:?}");
    }
}
