# ruff: noqa: INP001 - a script among shell scripts, not a package
"""Print what monitoring.sh applies: the files in infra/monitoring/ with their placeholders filled in.

Usage: monitoring.py render metric NAME                        one line each: key, digest, filter, description
       monitoring.py render policy|dashboard NAME [CHANNEL…]   one line each: key, digest, JSON
       monitoring.py find policy|dashboard NAME < a page of the API's list   one line each: key, digest, name, etag

There are tabs between the columns.

A policy and a dashboard carry their key and the digest of their file as labels; a metric, which has no labels, carries
the digest at the end of its description.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "monitoring"
LABELS = {"policy": "userLabels", "dashboard": "labels"}
LISTS = {"policy": "alertPolicies", "dashboard": "dashboards"}


def read_files(kind: str) -> dict[str, Any]:
    """Return the kind's definitions, by key."""
    if kind == "metric":
        metrics: dict[str, Any] = json.loads((FOLDER / "metrics.json").read_text(encoding="utf-8"))
        return metrics
    files = [FOLDER / "dashboard.json"] if kind == "dashboard" else sorted((FOLDER / "alerts").glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def render(kind: str, name: str, channels: list[str]) -> None:
    """Print each definition of the kind for the deployment `name`."""
    for key, definition in read_files(kind).items():
        filled = json.loads(json.dumps(definition).replace("${NAME}", name))
        if kind == "policy" and channels:
            filled["notificationChannels"] = channels
        digest = hashlib.sha256(json.dumps(filled, sort_keys=True).encode()).hexdigest()[:12]
        if kind in LABELS:
            filled[LABELS[kind]] = {"cloudsched": name, "key": key, "digest": digest}
            columns = [json.dumps(filled)]
        else:
            columns = [filled["filter"], filled["description"]]
        sys.stdout.write("\t".join((key, digest, *columns)) + "\n")


def find(kind: str, name: str) -> None:
    """Print those of the listed resources that belong to the deployment `name`."""
    for each in json.load(sys.stdin).get(LISTS[kind], ()):
        labels = each.get(LABELS[kind], {})
        if labels.get("cloudsched") == name and "key" in labels:
            line = (labels["key"], labels.get("digest", "none"), each["name"], each.get("etag", ""))
            sys.stdout.write("\t".join(line) + "\n")


if __name__ == "__main__":
    _, verb, kind, name, *channels = sys.argv
    if verb == "render":
        render(kind, name, channels)
    else:
        find(kind, name)
