"""What becomes of leases that run out: 15 seconds, the shortest that Azure knows. Usage: expiry.py URL"""

import time

from checks import check, refused, service

container = service().get_container_client("expiry")
names = ["untouched", "written", "overtaken"]
blobs = {name: container.get_blob_client(f"{name}.txt") for name in names}
leases = {}
for name, blob in blobs.items():
    blob.upload_blob(b"first", overwrite=True)
    begin = time.monotonic()
    leases[name] = blob.acquire_lease(lease_duration=15)


def state(name):
    return blobs[name].get_blob_properties().lease.state


while "leased" in map(state, names) and time.monotonic() < begin + 60:
    time.sleep(0.25)
seconds = time.monotonic() - begin
check("all leases have run out", [state(name) for name in names], ["expired"] * 3)
check("not before their time", seconds > 14.5)

refused("a write with one that has run out", 412, "LeaseLost",
        blobs["untouched"].upload_blob, b"late", overwrite=True, lease=leases["untouched"])
leases["untouched"].renew()
check("it is renewed where nobody has written", state("untouched"), "leased")
check("and writes", blobs["untouched"].upload_blob(b"second", overwrite=True, lease=leases["untouched"])["etag"])

check("anybody writes", blobs["written"].upload_blob(b"of another", overwrite=True)["etag"])
refused("and the lease is renewed no more", 409, "LeaseIdMismatchWithLeaseOperation", leases["written"].renew)

other = blobs["overtaken"].acquire_lease(lease_duration=15)
refused("a late write after another took the lease", 412, "LeaseIdMismatchWithBlobOperation",
        blobs["overtaken"].upload_blob, b"late", overwrite=True, lease=leases["overtaken"])
check("the other writes", blobs["overtaken"].upload_blob(b"second", overwrite=True, lease=other)["etag"])
check("and only the other has", blobs["overtaken"].download_blob().readall(), b"second")
print("finished")
