"""The SDK for tables in front of a service that checks no tag. Usage: tables.py URL"""

import sys
from threading import Thread

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import TableServiceClient, UpdateMode

from checks import check, refused

account = AzureNamedKeyCredential("account", "a2V5")
service = TableServiceClient(sys.argv[1], credential=account, retry_total=0)
table = service.create_table("people")
unchanged = {"match_condition": MatchConditions.IfNotModified}

# Insert Entity.
entity = {"PartitionKey": "it's", "RowKey": "a (b),c", "name": "Ada"}
keys = (entity["PartitionKey"], entity["RowKey"])
inserted = table.create_entity(entity)
refused("a second insert", 409, "EntityAlreadyExists", table.create_entity, entity, kind=ResourceExistsError)
read = table.get_entity(*keys)
check("the entity is there", read["name"], "Ada")
check("it has the tag of the insert", read.metadata["etag"], inserted["etag"])
check("a part of it is there", table.get_entity(*keys, select=["name"])["name"], "Ada")

# Update and merge with a tag.
for mode in (UpdateMode.REPLACE, UpdateMode.MERGE):
    read = table.get_entity(*keys)
    changed = table.update_entity({**read, "by": mode.value}, mode=mode, etag=read.metadata["etag"], **unchanged)
    check(f"{mode.value}: the tag is another one", changed["etag"] != read.metadata["etag"])
    error = refused(f"{mode.value}: a stale change", 412, "UpdateConditionNotSatisfied", table.update_entity,
                    {**read, "by": "stale"}, mode=mode, etag=read.metadata["etag"], kind=ResourceModifiedError,
                    **unchanged)
    check("the message names the id", f"RequestId:{error.response.headers['x-ms-request-id']}" in error.message)
    check(f"{mode.value}: it changed nothing", table.get_entity(*keys)["by"], mode.value)

# Insert Or Replace and Insert Or Merge check nothing, and those who check see them.
for mode in (UpdateMode.REPLACE, UpdateMode.MERGE):
    read = table.get_entity(*keys)
    table.upsert_entity({**entity, "by": f"upsert {mode.value}"}, mode=mode)
    refused(f"a change after an upsert by {mode.value}", 412, "UpdateConditionNotSatisfied", table.update_entity,
            read, mode=mode, kind=ResourceModifiedError, **unchanged)
    check("the upsert is there", table.get_entity(*keys)["by"], f"upsert {mode.value}")
table.upsert_entity({"PartitionKey": "b", "RowKey": "1"})
check("an upsert creates", table.get_entity("b", "1")["RowKey"], "1")

# With * the entity must exist, and no more.
for mode in (UpdateMode.REPLACE, UpdateMode.MERGE):
    table.update_entity({**entity, "by": "any"}, mode=mode)
    check(f"{mode.value} with *", table.get_entity(*keys)["by"], "any")
    refused(f"{mode.value} with * of nothing", 404, "ResourceNotFound", table.update_entity,
            {"PartitionKey": "no", "RowKey": "1"}, mode=mode, kind=ResourceNotFoundError)

# Query Entities.
check("all entities", sorted(found["PartitionKey"] for found in table.list_entities()), ["b", "it's"])

# A batch has no tag of its own.
refused("a batch", 501, "NotImplemented", table.submit_transaction, [("upsert", entity)])

# Clients that count together lose nothing.
counter = {"PartitionKey": "counter", "RowKey": "1"}
table.create_entity({**counter, "count": 0})


def count_ten():
    done = 0
    own = TableServiceClient(sys.argv[1], credential=account).get_table_client("people")
    while done < 10:
        seen = own.get_entity("counter", "1")
        try:
            own.update_entity({**seen, "count": seen["count"] + 1}, etag=seen.metadata["etag"], **unchanged)
            done += 1
        except ResourceModifiedError:
            pass


threads = [Thread(target=count_ten) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
check("nothing is lost", table.get_entity("counter", "1")["count"], 30)

# Delete Entity.
read = table.get_entity(*keys)
table.upsert_entity(entity)
refused("a stale deletion", 412, "UpdateConditionNotSatisfied", table.delete_entity, read, kind=ResourceModifiedError,
        **unchanged)
table.delete_entity(table.get_entity(*keys), **unchanged)
refused("the deleted entity", 404, "ResourceNotFound", table.get_entity, *keys, kind=ResourceNotFoundError)
table.delete_entity("b", "1")
table.delete_entity("b", "1")
check("what is gone can be deleted again", [found["RowKey"] for found in table.list_entities()], ["1"])
service.delete_table("people")
print("finished")
