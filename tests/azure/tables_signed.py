"""The SDK for tables, whose requests are signed (SharedKey), in front of a service that checks them. Usage: tables_signed.py URL"""

import sys

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import TableServiceClient, UpdateMode

from checks import check, refused

account = AzureNamedKeyCredential("account", "a2V5")
table = TableServiceClient(sys.argv[1], credential=account, retry_total=0).get_table_client("people")
unchanged = {"match_condition": MatchConditions.IfNotModified, "mode": UpdateMode.REPLACE}

# A signature is sent on as it came, and holds.
entity = {"PartitionKey": "a", "RowKey": sys.argv[1][-5:], "by": "insert"}
table.upsert_entity(entity)
keys = (entity["PartitionKey"], entity["RowKey"])
read = table.get_entity(*keys)
check("it is read", read["by"], "insert")

# With a condition.
try:
    first = table.update_entity({**read, "by": "first"}, etag=read.metadata["etag"], **unchanged)
except Exception as error:
    check("the read for a write is refused", (error.status_code, table.get_entity(*keys)["by"]), (403, "insert"))
else:
    check("the service judges the tag", table.get_entity(*keys).metadata["etag"], first["etag"])
    refused("a stale change", 412, "UpdateConditionNotSatisfied", table.update_entity, {**read, "by": "stale"},
            etag=read.metadata["etag"], kind=ResourceModifiedError, **unchanged)
    refused("a stale deletion", 412, "UpdateConditionNotSatisfied", table.delete_entity, *keys,
            etag=read.metadata["etag"], match_condition=MatchConditions.IfNotModified, kind=ResourceModifiedError)
    check("nothing has changed", table.get_entity(*keys)["by"], "first")
    table.delete_entity(*keys, etag=first["etag"], match_condition=MatchConditions.IfNotModified)
print("finished")
