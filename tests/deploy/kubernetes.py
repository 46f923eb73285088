"""Usage: kubernetes.py FILE...

Checks every document of these manifests against the schemas of Kubernetes, where unknown fields are errors, and writes
all of them as one JSON list to standard output.
"""

import json
import sys

import kubernetes_validate
import yaml

# The first with `lifecycle.preStop.sleep` switched on, and the newest that the package has schemas of.
VERSIONS = ["1.30", kubernetes_validate.latest_version()]

documents = []
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        for document in yaml.safe_load_all(file):
            for version in VERSIONS:
                kubernetes_validate.validate(document, version, strict=True)
            documents.append(document)
json.dump(documents, sys.stdout)
