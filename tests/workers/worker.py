"""A worker that takes work items one by one, each under its lease, and writes the results with it.

It speaks plain HTTP to the proxy and keeps the one rule of leases: work goes on while the renewals go on, and a
refused write ends it. What happens is told on standard output, one line for each event.

    worker.py HOST:PORT NAME ITEM...            each item is a path
    worker.py HOST:PORT NAME --stall ITEM...    the same, but it stops itself (SIGSTOP) within its first item
"""

import http.client
import os
import random
import signal
import sys
import threading
import time

LEASE_SECONDS = 2
STEPS = 3
STEP_SECONDS = 0.15


def main():
    address, name, *items = sys.argv[1:]
    stalls = items[0] == "--stall"
    items = items[stalls:]
    # Each begins elsewhere, so that they meet at the end and not all at the first item.
    random.shuffle(items)
    worker = Worker(address, name, stalls)
    while items:
        items = [item for item in items if not worker.take(item)]
        time.sleep(0.05)
    say("finished")


class Worker:
    def __init__(self, address, name, stalls):
        self.address, self.name, self.stalls = address, name, stalls

    def take(self, item):
        """Works on an item if nobody else does; tells whether the item is done."""
        fields = {"Lease-Duration": str(LEASE_SECONDS), "Lease-Holder": self.name}
        status, headers, _ = self.send("POST", "/.leases" + item, fields)
        if status == 409:
            return False
        expect(status, 201, "to acquire " + item)
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
                status, _, _ = self.send("PUT", item, lease, "%s %d by %s" % (text, step, self.name))
                if status == 412:
                    say("refused " + item)
                    return False
                if status not in (200, 201, 204):
                    say("unexpected %d for %s" % (status, item))
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

    def renew(self, item, lease, over):
        while not over.wait(LEASE_SECONDS / 3):
            self.send("PUT", "/.leases" + item, lease)

    def send(self, method, target, fields={}, body=None):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            connection.request(method, target, body, {"Content-Length": "0", **fields} if body is None else fields)
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()
        finally:
            connection.close()


def expect(status, expected, what):
    if status != expected:
        sys.exit("%d instead of %d when it wanted %s" % (status, expected, what))


def say(text):
    print(text, flush=True)


if __name__ == "__main__":
    main()
