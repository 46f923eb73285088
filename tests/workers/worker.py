"""A worker that takes work items one by one, each under its lease, and writes the results with it.

It speaks plain HTTP to the proxies and keeps the one rule of leases: work goes on while the renewals go on, and a
refused write ends it. A proxy that does not answer, or cannot say, is asked again, and so is the next proxy. Each
event is one line on standard output.

    worker.py HOST:PORT[,HOST:PORT...] NAME ITEM...     each item is a path
    worker.py HOST:PORT NAME --stall ITEM...            the same, but it stops itself (SIGSTOP) within its first item

The body of each write names its tenure: the worker, and how many leases it had before.
"""

import http.client
import os
import random
import signal
import sys
import threading
import time

LEASE_SECONDS = 2
WAIT_SECONDS = 1
STEPS = 3
STEP_SECONDS = 0.15
PATIENCE_SECONDS = 60
# The write was not sent, or its outcome is unknown. It may be sent again: it has the lease.
UNDECIDED = (None, 409, 502, 503, 504)


def main():
    addresses, name, *items = sys.argv[1:]
    stalls = items[0] == "--stall"
    items = items[stalls:]
    # Each begins elsewhere, so that they meet at the end and not all at the first item.
    random.shuffle(items)
    worker = Worker(addresses.split(","), name, stalls)
    while items:
        items = [item for item in items if not worker.take(item)]
        time.sleep(0.05)
    say("finished")


class Worker:
    def __init__(self, addresses, name, stalls):
        self.addresses, self.name, self.stalls = addresses, name, stalls
        self.tenures = 0

    def take(self, item):
        """Works on an item if it gets the lease; tells whether the item is done."""
        fields = {
            "Lease-Duration": str(LEASE_SECONDS),
            "Lease-Holder": self.name,
            "Prefer": "wait=%d" % WAIT_SECONDS,
        }
        status, headers, _ = self.send("POST", "/.leases" + item, fields)
        if status in UNDECIDED:
            return False
        expect(status, 201, "to acquire " + item)
        self.tenures += 1
        say("holds " + item)
        lease = {"Lease-Id": headers["Lease-Id"]}
        status, _, text = self.send("GET", item)
        is_done = status == 200 and text.startswith("done")
        if not is_done:
            is_done = self.work(item, lease)
        if is_done:
            # Who has lost the lease meanwhile has nothing to release.
            self.send("DELETE", "/.leases" + item, lease)
        return is_done

    def work(self, item, lease):
        over = threading.Event()
        renewals = threading.Thread(target=self.renew, args=(item, lease, over), daemon=True)
        renewals.start()
        try:
            for step in range(STEPS):
                text = "done" if step == STEPS - 1 else "step"
                if not self.write(item, lease, "%s %d by %s/%d" % (text, step, self.name, self.tenures)):
                    return False
                if self.stalls:
                    self.stalls = False
                    say("stalls " + item)
                    os.kill(os.getpid(), signal.SIGSTOP)
                time.sleep(STEP_SECONDS)
            say("did " + item)
            return True
        finally:
            over.set()
            renewals.join()

    def write(self, item, lease, body):
        """Writes until the outcome is known; tells whether the write was applied."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            status, _, _ = self.send("PUT", item, lease, body)
            if status in (200, 201, 204):
                return True
            if status == 412:
                say("refused " + item)
                return False
            if status not in UNDECIDED:
                break
            time.sleep(0.1)
        say("unexpected %s for %s" % (status, item))
        return False

    def renew(self, item, lease, over):
        while not over.wait(LEASE_SECONDS / 3):
            self.send("PUT", "/.leases" + item, lease)

    def send(self, method, target, fields={}, body=None):
        """Sends it to the proxies in turn until one answers; `None` as status if none does."""
        for address in random.sample(self.addresses, len(self.addresses)):
            connection = http.client.HTTPConnection(address, timeout=10)
            try:
                connection.request(method, target, body, {"Content-Length": "0", **fields} if body is None else fields)
                response = connection.getresponse()
                return response.status, response.headers, response.read().decode()
            except (OSError, http.client.HTTPException):
                continue
            finally:
                connection.close()
        return None, {}, ""


def expect(status, expected, what):
    if status != expected:
        sys.exit("%s instead of %d when it wanted %s" % (status, expected, what))


def say(text):
    print(text, flush=True)


if __name__ == "__main__":
    main()
