"""Reads metrics in the text form of Prometheus, as Prometheus' own client does; prints each sample as a line of JSON."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

for family in text_string_to_metric_families(sys.stdin.read()):
    for sample in family.samples:
        print(json.dumps([family.type, sample.name, sample.labels, sample.value]))
