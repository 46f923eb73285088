"""The requests of Terraform's azurerm backend: the state in a blob, the lock in a lease and in metadata. Usage: terraform.py URL"""

import base64
import json

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobLeaseClient, ContentSettings

from checks import check, refused, service

INFO = {"ID": "7d0c1e5a", "Operation": "OperationTypeApply", "Who": "alice@host", "Version": "1.11.4", "Path": "tfstate/x"}
LOCK = {"terraformlockid": base64.b64encode(json.dumps(INFO).encode()).decode()}
OF_STATE = {"overwrite": True, "content_settings": ContentSettings(content_type="application/json")}

container = service().get_container_client("tfstate")
container.create_container()
state = container.get_blob_client("production.tfstate")

# The lock: a blob to lease, if there is none, then the lease, then who holds it.
refused("no state yet", 404, "BlobNotFound", state.get_blob_properties, kind=ResourceNotFoundError)
state.upload_blob(b"", **OF_STATE)
lease = state.acquire_lease(lease_duration=-1)
held = state.get_blob_properties(lease=lease).metadata
state.set_blob_metadata({**held, **LOCK}, lease=lease)

# Another client, which gets the name of the holder.
refused("a second lock", 409, "LeaseAlreadyPresent", state.acquire_lease, lease_duration=-1, kind=ResourceExistsError)
told = json.loads(base64.b64decode(state.get_blob_properties().metadata["terraformlockid"]))
check("who holds it", told, INFO)
refused("a state without the lock", 412, "LeaseIdMissing", state.upload_blob, b"{}", **OF_STATE)

# The holder writes, and sends the metadata along.
for serial in [1, 2]:
    properties = state.get_blob_properties(lease=lease)
    written = json.dumps({"serial": serial}).encode()
    state.upload_blob(written, lease=lease, metadata=properties.metadata, **OF_STATE)
    check(f"state {serial} is written", state.download_blob(lease=lease).readall(), written)
    check("the lock says the same", state.get_blob_properties().metadata, LOCK)

# The end.
rest = {name: value for name, value in state.get_blob_properties(lease=lease).metadata.items() if name not in LOCK}
state.set_blob_metadata(rest, lease=lease)
BlobLeaseClient(state, lease_id=lease.id).release()
properties = state.get_blob_properties()
check("nobody holds it", (properties.metadata, properties.lease.state), ({}, "available"))
check("the state stays", json.loads(state.download_blob().readall()), {"serial": 2})
check("a workspace for each state", [blob.name for blob in container.list_blobs()], ["production.tfstate"])
print("finished")
