"""Workers of the SDK that share a queue, one of which is killed. Usage: queue_workers.py URL"""

import multiprocessing
import sys

from azure.storage.queue import QueueServiceClient

from checks import check

MESSAGES = 60
WORKERS = 4


def queue():
    service = QueueServiceClient(sys.argv[1], credential="sv=2026-02-06&sig=c2ln")
    return service.get_queue_client("work")


def hold(told):
    """Takes a message, tells of it, and never finishes it."""
    message = queue().receive_message(visibility_timeout=2)
    told.put(message.content)
    multiprocessing.Event().wait()


def work(finished, is_over):
    """Handles messages until all are finished."""
    own = queue()
    while not is_over.is_set():
        for message in own.receive_messages(visibility_timeout=120, max_messages=8):
            own.delete_message(message)
            finished.put((message.content, message.dequeue_count))


def main():
    own = queue()
    own.create_queue()
    for number in range(MESSAGES):
        own.send_message(str(number))
    told, finished, is_over = multiprocessing.Queue(), multiprocessing.Queue(), multiprocessing.Event()
    victim = multiprocessing.Process(target=hold, args=(told,))
    victim.start()
    held = told.get(timeout=30)
    victim.kill()
    victim.join()
    workers = [multiprocessing.Process(target=work, args=(finished, is_over)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    handled = [finished.get(timeout=60) for _ in range(MESSAGES)]
    is_over.set()
    for worker in workers:
        worker.join(timeout=30)
    check("each message is finished once", sorted(int(text) for text, _ in handled), list(range(MESSAGES)))
    check("that of the killed worker was taken twice", [text for text, count in handled if count != 1], [held])
    check("nothing is left", own.receive_message() is None and finished.empty())
    print("finished")


if __name__ == "__main__":
    main()
