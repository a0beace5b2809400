# ruff: noqa: INP001 - a script among shell scripts, not a package
"""Print what monitoring.sh applies: the files in infra/monitoring/ with their placeholders filled in.

Usage: monitoring.py render metric NAME DOLLARS MOUNTED   one line each: key, digest, file; a LogMetric is in the file
       monitoring.py render policy|dashboard NAME DOLLARS MOUNTED [CHANNEL…]   one line each: key, digest, JSON
       monitoring.py find policy|dashboard NAME < a page of the API's list   one line each: key, digest, name, etag

There are tabs between the columns. An alert comes when what runs costs more than DOLLARS a day. MOUNTED are the Cloud
Run services in which cloudsched is mounted, separated by spaces.

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
BUILT = Path(__file__).parents[2] / "build/monitoring"
"""Where the metrics' files are written: gcloud reads them, because its options know no labels."""
RUNS_WINDOWS_A_DAY = 24 * 6
"""How many of the alert's windows, which are ten minutes, a day has."""
LABELS = {"policy": "userLabels", "dashboard": "labels"}
LISTS = {"policy": "alertPolicies", "dashboard": "dashboards"}


def read_files(kind: str) -> dict[str, Any]:
    """Return the kind's definitions, by key."""
    if kind == "metric":
        metrics: dict[str, Any] = json.loads((FOLDER / "metrics.json").read_text(encoding="utf-8"))
        return metrics
    files = [FOLDER / "dashboard.json"] if kind == "dashboard" else sorted((FOLDER / "alerts").glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def fill(text: str, name: str, dollars: float, mounted: str) -> str:
    """Put the deployment's values in place of a file's placeholders.

    ``${ALL}``, ``${EXECUTOR}`` and ``${API}`` are regular expressions for names of Cloud Run services: all of the
    deployment, those that run handlers, and those that callers reach. A mounted one does all of that.
    """
    table = json.loads((FOLDER.parent / "resources.json").read_text(encoding="utf-8"))
    runs = max(1, round(dollars * 1e6 / table["dollarsPerMillionRuns"] / RUNS_WINDOWS_A_DAY))
    values = {'"${RUNS}"': str(runs), "${DOLLARS}": f"{dollars:g}", "${NAME}": name}
    own = {"ALL": "(api|execute|sweep|links)", "EXECUTOR": "execute", "API": "(api|links)"}
    values |= {f"${{{key}}}": "|".join([f"{name}-{functions}", *mounted.split()]) for key, functions in own.items()}
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


def digest(definition: dict[str, Any]) -> str:
    """Return a short hash of what is applied."""
    return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()[:12]


def to_log_metric(name: str, key: str, metric: dict[str, Any]) -> dict[str, Any]:
    """Return a metric as Cloud Logging's API has it."""
    labels = metric.get("labels", {})
    descriptor: dict[str, Any] = {"metricKind": "DELTA", "valueType": "INT64"}
    if labels:
        descriptor["labels"] = [{"key": label, "valueType": "STRING"} for label in labels]
    made = {"name": f"{name}-{key}", "filter": metric["filter"], "metricDescriptor": descriptor}
    if labels:
        made["labelExtractors"] = labels
    return made


def render_metrics(name: str, mounted: str) -> None:
    """Write and print each metric of the deployment `name`."""
    BUILT.mkdir(parents=True, exist_ok=True)
    for key, metric in read_files("metric").items():
        filled = json.loads(fill(json.dumps(metric), name, 1, mounted))
        made = to_log_metric(name, key, filled)
        shown = digest(made | filled)
        made["description"] = f"{filled['description']} [{shown}]"
        file = BUILT / f"{made['name']}.json"
        file.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
        sys.stdout.write("\t".join((key, shown, str(file))) + "\n")


def render(kind: str, name: str, dollars: float, mounted: str, channels: list[str]) -> None:
    """Print each policy, or the dashboard, of the deployment `name`."""
    for key, definition in read_files(kind).items():
        filled = json.loads(fill(json.dumps(definition), name, dollars, mounted))
        if kind == "policy" and channels:
            filled["notificationChannels"] = channels
        shown = digest(filled)
        filled[LABELS[kind]] = {"cloudsched": name, "key": key, "digest": shown}
        sys.stdout.write("\t".join((key, shown, json.dumps(filled))) + "\n")


def find(kind: str, name: str) -> None:
    """Print those of the listed resources that belong to the deployment `name`."""
    for each in json.load(sys.stdin).get(LISTS[kind], ()):
        labels = each.get(LABELS[kind], {})
        if labels.get("cloudsched") == name and "key" in labels:
            line = (labels["key"], labels.get("digest", "none"), each["name"], each.get("etag", ""))
            sys.stdout.write("\t".join(line) + "\n")


if __name__ == "__main__":
    _, verb, kind, name, *more = sys.argv
    if verb == "find":
        find(kind, name)
    elif kind == "metric":
        render_metrics(name, more[1])
    else:
        render(kind, name, float(more[0]), more[1], more[2:])
