"""Files as adlfs has them: copied, moved and removed. Usage: files.py URL"""

import sys

from adlfs import AzureBlobFileSystem

from checks import check

# It takes no URL but in a connection string.
connection = f"DefaultEndpointsProtocol=http;AccountName=account;AccountKey=a2V5;BlobEndpoint={sys.argv[1]};"
files = AzureBlobFileSystem(connection_string=connection, use_listings_cache=False)
files.mkdir("tree")
for name in ("a.txt", "b/c.txt", "b/d e.txt"):
    files.pipe(f"tree/{name}", name.encode())
files.cp_file("tree/b/d e.txt", "tree/copy.txt")
check("a copy", files.cat("tree/copy.txt"), b"b/d e.txt")
files.mv("tree/a.txt", "tree/moved.txt")
check("and a move", sorted(files.find("tree")), ["tree/b/c.txt", "tree/b/d e.txt", "tree/copy.txt", "tree/moved.txt"])
files.rm(["tree/b/c.txt", "tree/b/d e.txt"])
check("files are removed", sorted(files.find("tree")), ["tree/copy.txt", "tree/moved.txt"])
files.rmdir("tree")
check("nothing is left", not files.exists("tree"))
print("finished")
