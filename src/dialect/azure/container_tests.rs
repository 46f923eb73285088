//! The requests that the routes of accounts and containers serve.

use super::{
    AzureOperation, AzureResource, BlobRoute,
    call::tests::{BLOCK, read_on},
};
use crate::dialect::description::DescriptionUse;

/// A route is that of one kind of resources: a list of containers reads no folder of blobs, and no write meets an account.
#[test]
fn an_account_has_a_list_of_containers_and_nothing_else() {
    let on = |serves, method: &str, target: &str, fields: &[(&'static str, &'static str)]| {
        let call = read_on(method, target, fields, BlobRoute { serves, metadata_suffix: None });
        call.map(|call| {
            let head = call.forwarded.as_ref().unwrap();
            format!(
                "{:?} {} {}",
                AzureOperation::named(call.operation.unwrap()).unwrap(),
                head.method,
                str::from_utf8(&head.target).unwrap()
            )
        })
        .map_err(|refusal| refusal.service.map_or("", |service| service.code))
    };
    for (path, sent) in [("/", "/"), ("/account", "/account/"), ("/account/", "/account/")] {
        let target = format!("{path}?comp=list&prefix=a&sig=x");
        assert_eq!(on(AzureResource::Account, "GET", &target, &[]), Ok(format!("ListContainers HEAD {sent}?sig=x")));
    }
    for (method, target) in [
        ("GET", "/"),
        ("PUT", "/"),
        ("DELETE", "/account"),
        ("PUT", "/?comp=lease"),
        ("PUT", "/?restype=container"),
        ("GET", "/?restype=container&comp=list"),
        ("GET", "/account/..?comp=list"),
    ] {
        let refused = on(AzureResource::Account, method, target, &[BLOCK]);
        assert!(matches!(refused, Err("NotImplemented" | "UnsupportedHeader" | "")), "{method} {target}: {refused:?}");
    }
    for serves in [AzureResource::Container, AzureResource::Blob] {
        assert_eq!(on(serves, "GET", "/account?comp=list", &[]), Err("NotImplemented"), "{serves:?}");
    }
    let conditional = on(AzureResource::Account, "GET", "/?comp=list", &[("if-modified-since", "a")]);
    assert_eq!(conditional, Err("ConditionHeadersNotSupported"));
}

#[test]
fn metadata_of_containers_are_served_on_routes_that_keep_them() {
    let route = BlobRoute { serves: AzureResource::Container, metadata_suffix: Some(".meta") };
    let keeping = |method: &str, query: &str| {
        read_on(method, &format!("/photos?restype=container{query}"), &[("x-ms-meta-a", "1")], route)
    };
    let created = keeping("PUT", "").unwrap();
    assert!(matches!(created.description, Some(DescriptionUse::Created(kept)) if !kept.is_empty()));
    assert!(keeping("PUT", "&comp=metadata").unwrap().description.unwrap().is_alone());
    for (method, query) in [("GET", ""), ("HEAD", "&comp=metadata"), ("DELETE", "")] {
        let refusal = keeping(method, query).expect_err("it sets no metadata");
        assert_eq!(refusal.service.unwrap().code, "UnsupportedHeader", "{method} {query}");
    }
    for query in ["", "&comp=metadata"] {
        let read = read_on("GET", &format!("/photos?restype=container{query}"), &[], route).unwrap();
        assert_eq!(read.description, Some(DescriptionUse::Shown), "{query}");
    }
    let without =
        read_on("PUT", "/photos?restype=container", &[], BlobRoute { metadata_suffix: None, ..route }).unwrap();
    assert_eq!(without.description, None);
}
