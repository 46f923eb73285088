"""The SDK for Cosmos DB in front of a store that checks no tag. Usage: cosmos.py URL"""

import sys
from threading import Thread

from azure.core import MatchConditions
from azure.cosmos import CosmosClient
from azure.cosmos.exceptions import (
    CosmosAccessConditionFailedError,
    CosmosResourceExistsError,
    CosmosResourceNotFoundError,
)

from checks import check, raises

client = CosmosClient(sys.argv[1], "a2V5", enable_endpoint_discovery=False, retry_total=0)
orders = client.get_database_client("shop").get_container_client("orders")
unchanged = {"match_condition": MatchConditions.IfNotModified}


def order(name, by, kind="book"):
    return {"id": name, "kind": kind, "by": by}


def read(name, kind="book"):
    return orders.read_item(name, partition_key=kind)


# Create.
created = orders.create_item(order("a b", "create"))
raises("a second creation", CosmosResourceExistsError, orders.create_item, order("a b", "again"))
check("it has the tag of the creation", read("a b")["_etag"], created["_etag"])

# Replace and upsert with the tag that was read. Both name the document, one by its path and one in its body.
for name, change in (
    ("replace", lambda document, **options: orders.replace_item(document["id"], document, **options)),
    ("upsert", orders.upsert_item),
):
    before = read("a b")
    after = change({**before, "by": name}, etag=before["_etag"], **unchanged)
    check(f"{name}: the tag is another one", after["_etag"] != before["_etag"])
    raises(f"{name}: a stale change", CosmosAccessConditionFailedError, change, {**before, "by": "stale"},
           etag=before["_etag"], **unchanged)
    check(f"{name}: it changed nothing", read("a b")["by"], name)

# An upsert without a tag overwrites, and one who presents a tag sees it.
before = read("a b")
orders.upsert_item(order("a b", "whoever"))
raises("a change after it", CosmosAccessConditionFailedError, orders.upsert_item, {**before, "by": "stale"},
       etag=before["_etag"], **unchanged)
check("the upsert is there", read("a b")["by"], "whoever")

# An upsert that must create.
only_new = {"match_condition": MatchConditions.IfMissing}
orders.upsert_item(order("new", "first"), **only_new)
raises("a second one", CosmosAccessConditionFailedError, orders.upsert_item, order("new", "second"), **only_new)
check("the first is there", read("new")["by"], "first")

# The same name in another partition is another document.
orders.upsert_item(order("a b", "other", kind="film"))
check("the one in the first partition stays", read("a b")["by"], "whoever")
before = read("a b", "film")
orders.upsert_item(order("a b", "whoever"))
orders.upsert_item({**before, "by": "tag of its partition"}, etag=before["_etag"], **unchanged)

# Queries are POSTs too.
found = orders.query_items("SELECT * FROM orders", enable_cross_partition_query=True)
check("all documents", sorted(document["id"] for document in found), ["a b", "a b", "new"])

# Eight writers raise a counter, as Cosmos DB's documentation advises: read, change, and repeat on 412.
orders.create_item({"id": "count", "kind": "book", "value": 0})


def count(change):
    for _ in range(5):
        while True:
            document = read("count")
            try:
                change({**document, "value": document["value"] + 1}, etag=document["_etag"], **unchanged)
                break
            except CosmosAccessConditionFailedError:
                pass


replace = lambda document, **options: orders.replace_item("count", document, **options)  # noqa: E731
writers = [Thread(target=count, args=[change]) for change in (orders.upsert_item, replace) * 4]
for writer in writers:
    writer.start()
for writer in writers:
    writer.join()
check("no increment is lost", read("count")["value"], 40)

# Delete with a tag.
before = read("new")
orders.upsert_item(order("new", "changed"))
raises("a stale deletion", CosmosAccessConditionFailedError, orders.delete_item, "new", partition_key="book",
       etag=before["_etag"], **unchanged)
orders.delete_item("new", partition_key="book", etag=read("new")["_etag"], **unchanged)
raises("it is gone", CosmosResourceNotFoundError, read, "new")

print("finished")
