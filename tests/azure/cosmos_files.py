"""The SDK for Cosmos DB in front of a plain file server. Usage: cosmos_files.py URL"""

import sys
from threading import Thread

from azure.core import MatchConditions
from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import CosmosAccessConditionFailedError, CosmosResourceNotFoundError

from checks import check, raises

client = CosmosClient(sys.argv[1], "a2V5", enable_endpoint_discovery=False, retry_total=0)
orders = client.get_database_client("shop").get_container_client("orders")
unchanged = {"match_condition": MatchConditions.IfNotModified}
only_new = {"match_condition": MatchConditions.IfMissing}


def replace(document, **options):
    return orders.replace_item(document["id"], document, **options)


def read(name):
    return orders.read_item(name, partition_key="book")


# Create.
replace({"id": "a b", "kind": "book", "by": "create"}, **only_new)
raises("a second creation", CosmosAccessConditionFailedError, replace, {"id": "a b", "kind": "book"}, **only_new)

# The document has the tag of the answer, and its next state has another one.
first = read("a b")
check("the tag", first["_etag"], first.get_response_headers()["ETag"])
replace({**first, "by": "replace"}, etag=first["_etag"], **unchanged)
second = read("a b")
check("another tag", second["_etag"] != first["_etag"])
raises("a stale change", CosmosAccessConditionFailedError, replace, {**first, "by": "stale"}, etag=first["_etag"],
       **unchanged)
check("it changed nothing", read("a b")["by"], "replace")

# A write without a condition overwrites, whatever its document says, and one who presents a tag sees it.
replace({**first, "by": "whoever"})
raises("a change after it", CosmosAccessConditionFailedError, replace, second, etag=second["_etag"], **unchanged)

# Eight writers raise a counter, as Cosmos DB's documentation advises: read, change, and repeat on 412.
replace({"id": "count", "kind": "book", "value": 0}, **only_new)


def count():
    for _ in range(5):
        while True:
            document = read("count")
            try:
                replace({**document, "value": document["value"] + 1}, etag=document["_etag"], **unchanged)
                break
            except CosmosAccessConditionFailedError:
                pass


writers = [Thread(target=count) for _ in range(8)]
for writer in writers:
    writer.start()
for writer in writers:
    writer.join()
check("no increment is lost", read("count")["value"], 40)

# Delete with a tag.
raises("a stale deletion", CosmosAccessConditionFailedError, orders.delete_item, "a b", partition_key="book",
       etag=first["_etag"], **unchanged)
orders.delete_item("a b", partition_key="book", etag=read("a b")["_etag"], **unchanged)
raises("it is gone", CosmosResourceNotFoundError, read, "a b")

print("finished")
