"""All that the SDK does with queues in front of a plain server. Usage: queues.py URL [ACCOUNT KEY]"""

import sys
from datetime import datetime, timedelta, timezone

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.queue import BinaryBase64DecodePolicy, BinaryBase64EncodePolicy, QueueServiceClient

from checks import check, refused

url, *shared_key = sys.argv[1:]
credential = {"account_name": shared_key[0], "account_key": shared_key[1]} if shared_key else "sv=2026-02-06&sp=raup&sig=c2ln"
service = QueueServiceClient(url, credential=credential, retry_total=0)
queue = service.get_queue_client("jobs")


def texts(messages):
    return [message.content for message in messages]


# Queues.
refused("to put into no queue", 404, "QueueNotFound", queue.send_message, "a", kind=ResourceNotFoundError)
refused("to take from no queue", 404, "QueueNotFound", queue.receive_message, kind=ResourceNotFoundError)
refused("to delete no queue", 404, "QueueNotFound", queue.delete_queue, kind=ResourceNotFoundError)
queue.create_queue(metadata={"owner": "ann"})
# The SDK makes an exception of the success of Azure's service.
refused("to create it again", 204, "QueueAlreadyExists", queue.create_queue, metadata={"owner": "ann"})
refused("to create it otherwise", 409, "QueueAlreadyExists", queue.create_queue, kind=ResourceExistsError)
check("metadata of a queue", queue.get_queue_properties().metadata, {"owner": "ann"})
queue.set_queue_metadata({"owner": "bob", "kind": "x"})
check("other metadata", queue.get_queue_properties().metadata, {"owner": "bob", "kind": "x"})
for name in ("a-queue", "other"):
    service.create_queue(name)
check("all queues", [each.name for each in service.list_queues()], ["a-queue", "jobs", "other"])
pages = service.list_queues(results_per_page=2, include_metadata=True).by_page()
shown = [[(each.name, each.metadata or {}) for each in page] for page in pages]
expected = [[("a-queue", {}), ("jobs", {"owner": "bob", "kind": "x"})], [("other", {})]]
check("pages of queues with metadata", shown, expected)
check("queues by prefix", [each.name for each in service.list_queues(name_starts_with="o")], ["other"])
refused("a name that Azure refuses", 400, "InvalidResourceName", service.create_queue, "no_name")
refused("policies", 501, "NotImplemented", queue.get_queue_access_policy)
refused("the properties of the service", 501, "NotImplemented", service.get_service_properties)

# Messages.
check("no message", queue.receive_message() is None)
strange = " <a>&amp;]]> \t\n ä€😀\u0085 "
put = [queue.send_message(text) for text in ("one", strange, "three")]
check("an id", put[0].id)
check("it lasts a week", put[0].expires_on - put[0].inserted_on, timedelta(days=7))
check("how many there are", queue.get_queue_properties().approximate_message_count, 3)
check("a look", texts(queue.peek_messages(32)), ["one", strange, "three"])
first = queue.receive_message(visibility_timeout=60)
check("the first", (first.id, first.content, first.dequeue_count), (put[0].id, "one", 1))
check("it is hidden", abs(first.next_visible_on - datetime.now(timezone.utc) - timedelta(seconds=60)) < timedelta(seconds=5))
check("another look", texts(queue.peek_messages(32)), [strange, "three"])
pages = queue.receive_messages(messages_per_page=32, visibility_timeout=60)
others = list(pages)
check("the others", texts(others), [strange, "three"])
check("none is left", list(queue.receive_messages()), [])

# Receipts.
updated = queue.update_message(first, visibility_timeout=60, content="one, half done")
check("an update has another receipt", updated.pop_receipt != first.pop_receipt)
refused("to delete by the receipt before", 400, "PopReceiptMismatch", queue.delete_message, first)
refused("to update by it", 400, "PopReceiptMismatch", queue.update_message, first, visibility_timeout=1)
given_up = queue.update_message(updated, visibility_timeout=0)
again = queue.receive_message(visibility_timeout=1)
check("what is given up is taken again", (again.content, again.dequeue_count), ("one, half done", 2))
refused("to delete what another has", 400, "PopReceiptMismatch", queue.delete_message, given_up)
while queue.peek_messages() == []:
    pass
third = queue.receive_message()
check("it comes back", (third.id, third.dequeue_count), (first.id, 3))
refused("to delete by the receipt of the slow worker", 400, "PopReceiptMismatch", queue.delete_message, again)
queue.delete_message(third)
refused("to delete it again", 404, "MessageNotFound", queue.delete_message, third, kind=ResourceNotFoundError)
late = queue.send_message("late")
taken = queue.receive_message(visibility_timeout=1)
while queue.peek_messages() == []:
    pass
queue.delete_message(taken)
check("a late worker finishes what nobody else has", queue.peek_messages(), [])
refused("a receipt of nothing", 400, "PopReceiptMismatch", queue.delete_message, others[0].id, "abc")
refused("no such message", 404, "MessageNotFound", queue.delete_message, "1", others[0].pop_receipt)
queue.delete_message(others[0].id, others[0].pop_receipt)

# Times.
queue.send_message("later", visibility_timeout=2)
check("it is hidden at first", queue.receive_message() is None)
never = queue.send_message("for ever", time_to_live=-1)
check("a message without an end", never.expires_on.year, 9999)
brief = queue.send_message("brief", time_to_live=1)
while sorted(texts(queue.peek_messages(5))) != ["for ever", "later"]:
    pass
check("the brief one is over, and the other one is there", len(list(queue.receive_messages())), 2)
refused("to delete what is over", 404, "MessageNotFound", queue.delete_message, brief.id, brief.pop_receipt)
own = queue.send_message("deleted by its sender")
queue.delete_message(own.id, own.pop_receipt)
check("a sender can delete its message", queue.peek_messages(), [])

# Contents.
check("64 KiB", queue.send_message("ä" * 32768).id)
check("are taken", queue.receive_message().content == "ä" * 32768)
refused("more", 413, "RequestBodyTooLarge", queue.send_message, "a" * 65537)
binary = service.get_queue_client(
    "other", message_encode_policy=BinaryBase64EncodePolicy(), message_decode_policy=BinaryBase64DecodePolicy()
)
binary.send_message(bytes(range(256)))
check("octets", binary.receive_message().content, bytes(range(256)))

# The end.
for number in range(40):
    queue.send_message(str(number))
check("32 at once", len(texts(next(queue.receive_messages(messages_per_page=32).by_page()))), 32)
queue.clear_messages()
check("all are cleared", queue.get_queue_properties().approximate_message_count, 0)
queue.send_message("of the queue before")
queue.delete_queue()
refused("a queue that is gone", 404, "QueueNotFound", queue.peek_messages, kind=ResourceNotFoundError)
queue.create_queue()
check("a new queue is empty", queue.receive_message() is None)
print("finished")
