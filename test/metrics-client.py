"""Finds targets by Prometheus HTTP service discovery, scrapes each as Prometheus does, and reads the text.

Arguments: origin, and, where wanted, a file of authorities and a token. Prints one JSON object: the groups of targets,
the content types of discovery and of a target, and the families of all targets by name with their types and samples.
"""

import json
import re
import sys

import requests
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as text_families

origin, *more = sys.argv[1:]
session = requests.Session()
session.trust_env = False
if more:
    session.verify, token = more
    session.headers["Authorization"] = "Bearer " + token

# what Prometheus sends
session.headers["Accept"] = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;"
    "q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
session.headers["X-Prometheus-Scrape-Timeout-Seconds"] = "10"

discovery = session.get(origin + "/discovery", headers={"X-Prometheus-Refresh-Interval-Seconds": "60"}, timeout=60)
discovery.raise_for_status()
groups = discovery.json()
assert isinstance(groups, list)

families = {}
scraped = None
for group in groups:
    assert set(group) <= {"targets", "labels"}, group
    labels = group.get("labels", {})
    for name, value in labels.items():
        assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) and isinstance(value, str), labels
    for target in group["targets"]:
        assert re.fullmatch(r"[^/\s]+:\d+", target), target
        address = labels.get("__scheme__", "http") + "://" + target + labels.get("__metrics_path__", "/metrics")
        scraped = session.get(address, timeout=60)
        scraped.raise_for_status()
        is_open = scraped.headers["content-type"].startswith("application/openmetrics-text")
        for family in (open_families if is_open else text_families)(scraped.text):
            assert family.name not in families, family.name
            families[family.name] = {
                "type": family.type,
                "help": family.documentation,
                "samples": [{"name": s.name, "labels": s.labels, "value": s.value} for s in family.samples],
            }

types = [discovery.headers["content-type"], scraped.headers["content-type"]]
print(json.dumps({"groups": groups, "contentTypes": types, "families": families}, allow_nan=False, default=str))
