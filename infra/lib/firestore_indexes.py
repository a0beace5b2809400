# ruff: noqa: INP001 - a script among shell scripts, not a package
"""Compare the index and TTL files with a database, and print what is missing as gcloud arguments.

Usage: firestore_indexes.py composite|fields|ttl FILE < output of `gcloud firestore … list --format=json`

Each output line is one resource: the collection group, the field (or ``-``) and gcloud's arguments, separated by tabs.
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
                f"--field-config=field-path={field['fieldPath']},order={field['order'].lower()}"
                for field in index["fields"]
            )
            scope = index["queryScope"].lower().replace("_", "-")
            yield (index["collectionGroup"], "-", f"--query-scope={scope}", *arguments)


def find_missing_overrides(expected: dict[str, Any], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the single-field overrides that differ, in the file's order: the rule for all fields comes first."""
    present = {
        _get_field_key(field): sorted(_get_shape(index) for index in field.get("indexConfig", {}).get("indexes", ()))
        for field in existing
    }
    for override in expected["fieldOverrides"]:
        group, path = override["collectionGroup"], override["fieldPath"]
        shapes = sorted((index["queryScope"], ((path, index["order"]),)) for index in override["indexes"])
        if present.get((group, path)) != shapes:
            # gcloud always uses the scope of a single collection here.
            arguments = (f"--index=order={index['order'].lower()}" for index in override["indexes"])
            yield (group, path, *(arguments if override["indexes"] else ("--disable-indexes",)))


def find_missing_ttl_policies(expected: list[dict[str, str]], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the TTL policies that the database lacks."""
    present = {_get_field_key(field) for field in existing if field.get("ttlConfig")}
    for policy in expected:
        if (policy["collectionGroup"], policy["fieldPath"]) not in present:
            yield (policy["collectionGroup"], policy["fieldPath"], "--enable-ttl")


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
    kinds = {"composite": find_missing_composites, "fields": find_missing_overrides, "ttl": find_missing_ttl_policies}
    lines = kinds[kind](json.loads(Path(file).read_text(encoding="utf-8")), json.loads(listed) if listed else [])
    sys.stdout.writelines("\t".join(line) + "\n" for line in lines)
