"""Lists of the blobs in a container. Usage: lists.py URL"""

from azure.core.exceptions import ResourceNotFoundError

from checks import check, refused, service

container = service().get_container_client("documents")


def names(blobs):
    return [blob.name for blob in blobs]


def pages(**options):
    return [names(page) for page in container.list_blobs(**options).by_page()]


refused("a list of no container", 404, "ContainerNotFound",
        lambda: names(container.list_blobs()), kind=ResourceNotFoundError)
container.create_container()
check("an empty container", names(container.list_blobs()), [])
every = sorted(["a-b", "a/1.txt", "a/b/2 ü&<.txt", "a/b/3%.txt", "a0", "z/4+5.txt", "z/日本"], key=str.encode)
for name in every:
    container.get_blob_client(name).upload_blob(name.encode())
blobs = list(container.list_blobs())
check("all blobs, ordered by name", names(blobs), every)
check("their lengths", [blob.size for blob in blobs], [len(name.encode()) for name in every])
properties = container.get_blob_client("a0").get_blob_properties()
check("a date", next(blob for blob in blobs if blob.name == "a0").last_modified >= properties.last_modified)
check("the names of all blobs", list(container.list_blob_names()), every)
check("the kind of a blob", {blob.blob_type for blob in blobs}, {"BlockBlob"})
check("a folder", names(container.list_blobs(name_starts_with="a/b/")), ["a/b/2 ü&<.txt", "a/b/3%.txt"])
check("a prefix", names(container.list_blobs(name_starts_with="a/b/3")), ["a/b/3%.txt"])
check("a beginning of folders", names(container.list_blobs(name_starts_with="a")), every[:5])
check("no such folder", names(container.list_blobs(name_starts_with="none/")), [])
for size in [1, 2, 3, 100]:
    expected = [every[start:start + size] for start in range(0, len(every), size)]
    check(f"pages of {size}", pages(results_per_page=size), expected)
first = next(container.list_blobs(results_per_page=3).by_page())
check("the first page", names(first), every[:3])
start = container.list_blobs(results_per_page=3).by_page()
next(start)
rest = container.list_blobs().by_page(continuation_token=start.continuation_token)
check("the rest from its token", [blob.name for page in rest for blob in page], every[3:])
check("the top level", sorted(names(container.walk_blobs())), ["a-b", "a/", "a0", "z/"])
check("a level below", sorted(names(container.walk_blobs(name_starts_with="a/"))), ["a/1.txt", "a/b/"])
folder = next(item for item in container.walk_blobs() if item.name == "z/")
check("a folder walked into", names(folder), every[5:])
for size in [1, 2, 3, 100]:
    walked = names(container.walk_blobs(delimiter="/b", results_per_page=size))
    check(f"another delimiter, by {size}", sorted(walked, key=str.encode), [*every[:2], "a/b", *every[4:]])
refused("another folder", 400, "InvalidQueryParameterValue",
        lambda: names(container.list_blobs(name_starts_with="../")))
container.get_blob_client("a0").delete_blob()
check("without what was deleted", names(container.list_blobs()), [name for name in every if name != "a0"])
print("finished")
