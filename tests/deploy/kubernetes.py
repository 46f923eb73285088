"""Usage: kubernetes.py FILE...

Checks every document of these manifests against the schemas of Kubernetes, where unknown fields are errors, and writes
all of them as one JSON list to standard output. Kinds that are no part of Kubernetes have no schema there.
"""

import json
import sys

import kubernetes_validate
import yaml

# The first with `lifecycle.preStop.sleep` switched on, and the newest that the package has schemas of.
VERSIONS = ["1.30", kubernetes_validate.latest_version()]

OTHERS = ("monitoring.coreos.com/", "kustomize.config.k8s.io/")

documents = []
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        for document in yaml.safe_load_all(file):
            for version in VERSIONS if not document["apiVersion"].startswith(OTHERS) else []:
                kubernetes_validate.validate(document, version, strict=True)
            documents.append(document)
json.dump(documents, sys.stdout)
