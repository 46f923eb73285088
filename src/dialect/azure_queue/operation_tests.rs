//! Requests as the SDKs send them, and as no client should.

use proptest::prelude::*;

use super::*;
use crate::dialect::azure_queue::message_id;

fn read_with(method: &str, target: &str, headers: &HeaderMap) -> Result<QueueCall, (u16, &'static str)> {
    let method = Method::from_bytes(method.as_bytes()).expect("a method");
    let request = Incoming { method: &method, other_methods: &[], target: target.as_bytes(), headers };
    QueueCall::of(request).map_err(|refusal| {
        refusal.service.map_or((refusal.code.status().as_u16(), refusal.code.as_str()), |told| (told.status, told.code))
    })
}

fn read(method: &str, target: &str) -> Result<QueueCall, (u16, &'static str)> {
    read_with(method, target, &HeaderMap::new())
}

fn of_queue(method: &str, target: &str) -> QueueOf {
    match read(method, target).expect("an operation").operation {
        QueueOperation::Of(queue, of_queue) => {
            assert_eq!(queue, "jobs");
            of_queue
        }
        list @ QueueOperation::List(_) => panic!("{list:?}"),
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn operations_on_messages_have_azures_defaults() {
    let week = seconds(WEEK.unsigned_abs());
    for (method, target, expected) in [
        ("POST", "/jobs/messages", QueueOf::Put(Some(week), seconds(0))),
        ("POST", "/jobs/messages/", QueueOf::Put(Some(week), seconds(0))),
        ("POST", "/jobs/messages?messagettl=-1&visibilitytimeout=604800", QueueOf::Put(None, week)),
        ("POST", "/jobs/messages?messagettl=9&visibilitytimeout=8", QueueOf::Put(Some(seconds(9)), seconds(8))),
        ("GET", "/jobs/messages", QueueOf::Take(1, seconds(30))),
        ("GET", "/jobs/messages?numofmessages=32&visibilitytimeout=1&sig=a", QueueOf::Take(32, seconds(1))),
        ("GET", "/jobs/messages?peekonly=true&numofmessages=2", QueueOf::Peek(2)),
        ("GET", "/jobs/messages?peekonly=false", QueueOf::Take(1, seconds(30))),
        ("DELETE", "/jobs/messages", QueueOf::Clear),
        ("DELETE", "/jobs", QueueOf::Delete),
        ("PUT", "/account/jobs", QueueOf::Create(Metadata::default())),
        ("HEAD", "/jobs?comp=metadata&timeout=30", QueueOf::ReadMetadata),
    ] {
        assert_eq!(of_queue(method, target), expected, "{method} {target}");
    }
}

#[test]
fn an_operation_on_one_message_presents_its_receipt() {
    let (id, receipt) = (message_id(1, [1; 16]), PopReceipt::new([5; 16]));
    let target = format!("/jobs/messages/{id}?popreceipt={}", receipt.reveal());
    assert_eq!(of_queue("DELETE", &target), QueueOf::DeleteMessage(id.clone(), receipt));
    let update = format!("{target}&visibilitytimeout=0");
    assert_eq!(of_queue("PUT", &update), QueueOf::Update(id.clone(), receipt, seconds(0)));
    for (method, target, expected) in [
        ("PUT", target.clone(), (400, "MissingRequiredQueryParameter")),
        ("DELETE", format!("/jobs/messages/{id}"), (400, "MissingRequiredQueryParameter")),
        ("DELETE", format!("/jobs/messages/{id}?popreceipt=a"), (400, "PopReceiptMismatch")),
        ("DELETE", "/jobs/messages/1?popreceipt=a".to_owned(), (404, "MessageNotFound")),
        ("DELETE", format!("/jobs/messages/%2e%2e?popreceipt={}", receipt.reveal()), (404, "MessageNotFound")),
        ("PUT", format!("{target}&visibilitytimeout=604801"), (400, "OutOfRangeQueryParameterValue")),
        ("GET", target, (405, "method-not-allowed")),
    ] {
        assert_eq!(read(method, &target), Err(expected), "{method} {target}");
    }
}

#[test]
fn an_account_stands_before_the_queue() {
    for (method, target, account, queue) in [
        ("PUT", "/jobs", "", "jobs"),
        ("PUT", "/account/jobs", "/account", "jobs"),
        ("POST", "/account/jobs/messages", "/account", "jobs"),
        ("POST", "/messages/jobs/messages", "/messages", "jobs"),
    ] {
        let call = read(method, target).expect("an operation");
        assert_eq!(call.account, account, "{target}");
        assert!(matches!(call.operation, QueueOperation::Of(name, _) if name == queue), "{target}");
    }
}

#[test]
fn a_list_has_pages() {
    let list = |target| read("GET", target).map(|call| (call.account, call.operation));
    let all = QueueList { prefix: String::new(), after: None, max_queues: QUEUES_MAX, shows_metadata: false };
    assert_eq!(list("/?comp=list"), Ok((String::new(), QueueOperation::List(all.clone()))));
    let wanted = QueueList { prefix: "jo".to_owned(), after: Some("jobs".to_owned()), max_queues: 2, ..all.clone() };
    let target = "/account/?comp=list&prefix=jo&marker=jobs&maxresults=2&include=";
    assert_eq!(list(target), Ok(("/account".to_owned(), QueueOperation::List(wanted))));
    let read = QueueList { max_queues: READ_QUEUES_MAX, shows_metadata: true, ..all };
    assert_eq!(list("/?comp=list&include=metadata&maxresults=5000").unwrap().1, QueueOperation::List(read));
}

#[test]
fn metadata_are_in_fields() {
    let headers = HeaderMap::from_iter([("x-ms-meta-Owner".parse().unwrap(), "a".parse().unwrap())]);
    let mut metadata = Metadata::default();
    metadata.insert("owner", "a").expect("metadata");
    let call = read_with("PUT", "/jobs?comp=metadata", &headers).expect("an operation");
    assert_eq!(call.operation, QueueOperation::Of("jobs".to_owned(), QueueOf::SetMetadata(metadata)));
    let headers = HeaderMap::from_iter([("x-ms-meta-1".parse().unwrap(), "a".parse().unwrap())]);
    assert_eq!(read_with("PUT", "/jobs", &headers), Err((400, "InvalidMetadata")));
}

#[test]
fn all_else_is_refused_by_name() {
    for (method, target, expected) in [
        ("GET", "/?restype=service&comp=properties", (501, "NotImplemented")),
        ("GET", "/account?restype=service&comp=stats", (501, "NotImplemented")),
        ("PUT", "/jobs?comp=acl", (501, "NotImplemented")),
        ("POST", "/?comp=list", (405, "method-not-allowed")),
        ("GET", "/jobs", (405, "method-not-allowed")),
        ("PATCH", "/jobs/messages", (405, "method-not-allowed")),
        ("GET", "/jobs?comp=lease", (400, "InvalidQueryParameterValue")),
        ("PUT", "/Jobs", (400, "InvalidResourceName")),
        ("PUT", "/", (400, "OutOfRangeInput")),
        ("PUT", "/messages", (400, "InvalidResourceName")),
        ("PUT", "/jobs.json", (400, "InvalidResourceName")),
        ("PUT", "/jobs%2F", (400, "InvalidResourceName")),
        ("GET", "/jobs/messages?numofmessages=0", (400, "OutOfRangeQueryParameterValue")),
        ("GET", "/jobs/messages?numofmessages=33", (400, "OutOfRangeQueryParameterValue")),
        ("GET", "/jobs/messages?visibilitytimeout=0", (400, "OutOfRangeQueryParameterValue")),
        ("POST", "/jobs/messages?visibilitytimeout=604801", (400, "OutOfRangeQueryParameterValue")),
        ("POST", "/jobs/messages?messagettl=-2", (400, "OutOfRangeQueryParameterValue")),
        ("POST", "/jobs/messages?messagettl=0", (400, "InvalidQueryParameterValue")),
        ("POST", "/jobs/messages?messagettl=8&visibilitytimeout=8", (400, "InvalidQueryParameterValue")),
        ("GET", "/?comp=list&maxresults=0", (400, "OutOfRangeQueryParameterValue")),
        ("GET", "/?comp=list&include=other", (400, "InvalidQueryParameterValue")),
    ] {
        assert_eq!(read(method, target), Err(expected), "{method} {target}");
    }
}

proptest! {
    /// In any path, the name of the queue is one that leads nowhere else.
    #[test]
    fn a_queue_is_a_plain_name(
        method in proptest::sample::select(vec!["PUT", "GET", "POST", "DELETE"]),
        path in "/([a-z.%/]|jobs|messages|%2e|\\.\\.){0,12}",
        query in "(|\\?comp=(list|metadata))",
    ) {
        if let Ok(QueueCall { operation: QueueOperation::Of(queue, _), .. }) = read(method, &[path, query].concat()) {
            prop_assert!(crate::dialect::azure_queue::is_queue_name(&queue));
        }
    }
}
