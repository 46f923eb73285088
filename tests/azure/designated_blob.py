"""A designated blob: its lease, taken by the SDK for blobs, guards a table. Usage: designated_blob.py URL"""

import sys

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ResourceExistsError
from azure.data.tables import TableServiceClient, UpdateMode

from checks import check, refused, service

account = AzureNamedKeyCredential("account", "a2V5")
tables = {name: TableServiceClient(f"{sys.argv[1]}/{name}", credential=account, retry_total=0).create_table(name)
          for name in ("people", "orders")}
people, orders = tables["people"], tables["orders"]
blob = service().get_blob_client("locks", "people")
entity = {"PartitionKey": "a", "RowKey": "1", "by": "nobody"}

refused("a write without the lease", 412, "LeaseIdMissing", people.upsert_entity, entity)
lease = blob.acquire_lease(lease_duration=15)
held = {"headers": {"Lease-Id": lease.id}}
refused("a second lease", 409, "LeaseAlreadyPresent", blob.acquire_lease, lease_duration=15, kind=ResourceExistsError)
refused("a write beside the holder", 412, "LeaseIdMissing", people.create_entity, entity)
people.create_entity({**entity, "by": "holder"}, **held)
read = people.get_entity("a", "1")
check("all may read", read["by"], "holder")
people.update_entity({**entity, "by": "again"}, mode=UpdateMode.REPLACE, etag=read.metadata["etag"],
                     match_condition=MatchConditions.IfNotModified, **held)
refused("a stale write of the holder", 412, "UpdateConditionNotSatisfied", people.update_entity,
        {**entity, "by": "stale"}, mode=UpdateMode.REPLACE, etag=read.metadata["etag"],
        match_condition=MatchConditions.IfNotModified, **held)
lease.renew()
refused("another table", 412, "LeaseNotPresentWithBlobOperation", orders.upsert_entity, entity, **held)
other = service().get_blob_client("locks", "orders").acquire_lease(lease_duration=-1)
orders.upsert_entity(entity, headers={"Lease-Id": other.id})
lease.release()
refused("a write after the release", 412, "LeaseNotPresentWithBlobOperation", people.upsert_entity, entity, **held)
next_holder = blob.acquire_lease(lease_duration=15)
people.delete_entity("a", "1", headers={"Lease-Id": next_holder.id})
print("finished")
