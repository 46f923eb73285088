"""The checkpoint store of Event Hubs, as it is: claims of partitions, and how far each was read. Usage: checkpoints.py URL"""

import sys
from concurrent.futures import ThreadPoolExecutor

from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore

from checks import check, service

PLACE = {"fully_qualified_namespace": "n.servicebus.windows.net", "eventhub_name": "Hub", "consumer_group": "$Default"}
PARTITIONS, OWNERS = 4, 3

service().get_container_client("checkpoints").create_container()


def store():
    return BlobCheckpointStore(sys.argv[1], "checkpoints", retry_total=5)


def ownerships(owner, known=()):
    tags = {one["partition_id"]: one["etag"] for one in known}
    return [{**PLACE, "partition_id": str(partition), "owner_id": owner, "etag": tags.get(str(partition))}
            for partition in range(PARTITIONS)]


def claimed_by(name, known):
    return [name] * len(store().claim_ownership(ownerships(name, known)))


def race(what, known):
    """All owners claim all partitions at once, and each partition gets one of them."""
    with ThreadPoolExecutor(OWNERS) as owners:
        won = sum(owners.map(lambda number: claimed_by(f"owner-{number}", known), range(OWNERS)), [])
    listed = store().list_ownership(**PLACE)
    check(f"{what}: one owner wins each partition", len(won), PARTITIONS)
    check(f"{what}: the list says who", sorted(won), sorted(one["owner_id"] for one in listed))
    return listed


check("no partition has an owner", store().list_ownership(**PLACE), [])
listed = race("the first claims", [])
again = race("claims of what others hold", listed)
check("each claim has a tag of its own", {one["etag"] for one in listed} & {one["etag"] for one in again}, set())
check("a claim with an old tag is lost", store().claim_ownership(ownerships("late", listed)), [])
check("a claim without a tag is lost", store().claim_ownership(ownerships("late")), [])
check("nothing has changed", [one["owner_id"] for one in store().list_ownership(**PLACE)],
      [one["owner_id"] for one in again])
mine = store().claim_ownership(ownerships("last", again))
check("a claim by the listed tags wins", [one["owner_id"] for one in mine], ["last"] * PARTITIONS)
renewed = store().claim_ownership(mine)
check("and is renewed by its own", len(renewed), PARTITIONS)

for number in [7, 8]:
    store().update_checkpoint({**PLACE, "partition_id": "0", "offset": str(100 * number), "sequence_number": number})
checkpoints = store().list_checkpoints(**PLACE)
check("the last checkpoint counts", [(one["partition_id"], one["sequence_number"], one["offset"]) for one in checkpoints],
      [("0", 8, "800")])
check("checkpoints are no ownerships", len(store().list_ownership(**PLACE)), PARTITIONS)
print("finished")
