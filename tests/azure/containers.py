"""Containers: their dates, metadata and list. Usage: containers.py URL"""

import time
from email.utils import parsedate_to_datetime

from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError

from checks import check, refused, service

account = service()
photos = account.get_container_client("photos")


def settled():
    """The properties once their date is that of one state: two seconds older than the answer."""
    answers = []
    while True:
        properties = photos.get_container_properties(raw_response_hook=answers.append)
        sent = parsedate_to_datetime(answers[-1].http_response.headers["Date"])
        if (sent - properties.last_modified).total_seconds() >= 2:
            return properties
        time.sleep(0.1)


def names(containers):
    return [container.name for container in containers]


check("an account without containers", names(account.list_containers()), [])
refused("metadata of what is not there", 404, "ContainerNotFound",
        photos.set_container_metadata, {"a": "1"}, kind=ResourceNotFoundError)
created = photos.create_container(metadata={"Owner": "alice"})
properties = settled()
check("its metadata", properties.metadata, {"Owner": "alice"})
check("its tag", properties.etag, created["etag"])
check("its date", properties.last_modified >= created["last_modified"])
refused("a second one", 409, "ContainerAlreadyExists", photos.create_container, metadata={"Owner": "bob"})

# Conditions.
before = properties.last_modified
photos.upload_blob("cat.txt", b"one")
check("a blob does not date it", photos.get_container_properties().last_modified, before)
refused("what has not changed since", 412, "ConditionNotMet", photos.set_container_metadata, {"owner": "bob"},
        if_modified_since=before, kind=ResourceModifiedError)
set_once = photos.set_container_metadata({"owner": "bob"}, if_modified_since=before.replace(year=2000))
check("a new state", set_once["etag"] != properties.etag)
check("other metadata", photos.get_container_properties().metadata, {"owner": "bob"})
refused("a deletion with a date before the change", 412, "ConditionNotMet",
        photos.delete_container, if_unmodified_since=before, kind=ResourceModifiedError)
lease = photos.acquire_lease(lease_duration=-1)
check("metadata with the lease", photos.set_container_metadata({"owner": "carol"}, lease=lease)["etag"])
lease.release()

# Lists.
account.get_container_client("papers").create_container()
account.get_container_client("plain").create_container()
check("all containers", names(account.list_containers()), ["papers", "photos", "plain"])
check("a prefix", names(account.list_containers(name_starts_with="pa")), ["papers"])
pages = [names(page) for page in account.list_containers(results_per_page=2).by_page()]
check("pages", pages, [["papers", "photos"], ["plain"]])
shown = {container.name: container for container in account.list_containers(include_metadata=True)}
properties = settled()
check("its state in the list", (shown["photos"].etag, shown["photos"].metadata), (properties.etag, {"owner": "carol"}))
listed = next(container for container in account.list_containers() if container.name == "photos")
check("its date in the list", listed.last_modified, properties.last_modified)
check("its lease in the list", listed.lease.state, "available")
check("no metadata unless asked for", listed.metadata, None)
check("the document is no blob", [blob.name for blob in photos.list_blobs()], ["cat.txt"])

# The end.
for attempt in range(3):
    try:
        photos.delete_container(if_unmodified_since=settled().last_modified)
        break
    except ResourceModifiedError:
        # The file is older by a second than the answer to its write: such a date may be that of an earlier state.
        photos.set_container_metadata({"owner": "dave"})
check("without what was deleted", names(account.list_containers()), ["papers", "plain"])
photos.create_container()
check("a later one has no metadata of it", photos.get_container_properties().metadata, {})
print("finished")
