# ruff: noqa: INP001 - a script among shell scripts, not a package
"""Compare the index and TTL files with a database, and print what is missing or not ready.

Usage: firestore_indexes.py KIND FILE < output of `gcloud firestore … list --format=json`

Each output line is one resource, in columns separated by tabs:

- ``composites``, ``overrides``, ``ttl-policies``: collection group, field (or ``-``), and the arguments for gcloud that
  create what the database lacks; ``added-overrides`` does not drop any single-field index that the database has
- ``unready-composites``, ``unready-overrides``: collection group, fields, and the state of an index that is not ready
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Line = tuple[str, ...]


def find_missing_composites(expected: dict[str, Any], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the composite indexes that the database lacks."""
    present = {(_get_segment(index["name"], "collectionGroups"), *_get_shape(index)) for index in existing}
    for index in expected["indexes"]:
        if (index["collectionGroup"], *_get_shape(index)) not in present:
            arguments = (
                f"--field-config=field-path={field['fieldPath']},"
                + (f"order={field['order'].lower()}" if "order" in field else "array-config=contains")
                for field in index["fields"]
            )
            scope = index["queryScope"].lower().replace("_", "-")
            yield (index["collectionGroup"], "-", f"--query-scope={scope}", *arguments)


def find_missing_overrides(
    expected: dict[str, Any], existing: list[dict[str, Any]], *, keeps_existing: bool = False
) -> Iterator[Line]:
    """Yield the single-field overrides that differ, in the file's order: the rule for all fields comes first."""
    present = {
        _get_field_key(field): sorted(_get_shape(index) for index in field.get("indexConfig", {}).get("indexes", ()))
        for field in existing
    }
    for override in expected["fieldOverrides"]:
        group, path = override["collectionGroup"], override["fieldPath"]
        shapes = sorted((index["queryScope"], ((path, index["order"]),)) for index in override["indexes"])
        if keeps_existing:
            shapes = sorted({*shapes, *present.get((group, path), ())})
        if present.get((group, path)) != shapes:
            # gcloud always uses the scope of a single collection here.
            arguments = [
                f"--index=order={order.lower()}" if order else "--index=array-config=contains"
                for _, ((_, order),) in shapes
            ]
            yield (group, path, *(arguments or ["--disable-indexes"]))


def find_added_overrides(expected: dict[str, Any], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the overrides that lack an index, together with all indexes that they have."""
    return find_missing_overrides(expected, existing, keeps_existing=True)


def find_missing_ttl_policies(expected: list[dict[str, str]], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the TTL policies that the database lacks."""
    present = {_get_field_key(field) for field in existing if field.get("ttlConfig")}
    for policy in expected:
        if (policy["collectionGroup"], policy["fieldPath"]) not in present:
            yield (policy["collectionGroup"], policy["fieldPath"], "--enable-ttl")


def find_unready_composites(expected: dict[str, Any], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the composite indexes that cannot serve queries yet, with their state."""
    states = {
        (_get_segment(index["name"], "collectionGroups"), *_get_shape(index)): index["state"] for index in existing
    }
    for index in expected["indexes"]:
        state = states.get((index["collectionGroup"], *_get_shape(index)), "MISSING")
        if state != "READY":
            yield (index["collectionGroup"], ", ".join(field["fieldPath"] for field in index["fields"]), state)


def find_unready_overrides(expected: dict[str, Any], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the single-field indexes that cannot serve queries yet, with their state."""
    states = {
        (*_get_field_key(field), *_get_shape(index)): index["state"]
        for field in existing
        for index in field.get("indexConfig", {}).get("indexes", ())
    }
    for override in expected["fieldOverrides"]:
        group, path = override["collectionGroup"], override["fieldPath"]
        for index in override["indexes"]:
            state = states.get((group, path, index["queryScope"], ((path, index["order"]),)), "MISSING")
            if state != "READY":
                yield (group, path, state)


def _get_shape(index: dict[str, Any]) -> tuple[str, tuple[tuple[str, str], ...]]:
    paths = ((field["fieldPath"].strip("`"), field.get("order", "")) for field in index["fields"])
    return index["queryScope"], tuple(path for path in paths if path[0] != "__name__")


def _get_field_key(field: dict[str, Any]) -> tuple[str, str]:
    return _get_segment(field["name"], "collectionGroups"), _get_segment(field["name"], "fields").strip("`")


def _get_segment(name: str, kind: str) -> str:
    segments = name.split("/")
    return segments[segments.index(kind) + 1]


if __name__ == "__main__":
    kind, file = sys.argv[1:]
    listed = sys.stdin.read().strip()
    kinds: dict[str, Callable[[Any, list[dict[str, Any]]], Iterator[Line]]]
    kinds = {
        "composites": find_missing_composites,
        "overrides": find_missing_overrides,
        "added-overrides": find_added_overrides,
        "ttl-policies": find_missing_ttl_policies,
        "unready-composites": find_unready_composites,
        "unready-overrides": find_unready_overrides,
    }
    lines = kinds[kind](json.loads(Path(file).read_text(encoding="utf-8")), json.loads(listed) if listed else [])
    sys.stdout.writelines("\t".join(line) + "\n" for line in lines)
