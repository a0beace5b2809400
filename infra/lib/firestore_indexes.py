# ruff: noqa: INP001 - a script beside others, not a package
"""Compares the index and TTL files with what a database has, and prints what is missing as arguments for gcloud.

Usage: firestore_indexes.py composite|fields|ttl FILE < what `gcloud firestore … list --format=json` says

Each line is one resource: the collection group, the field (or ``-``), and gcloud's arguments, separated by tabs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Line = tuple[str, ...]


def composite(wanted: dict[str, Any], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the composite indexes that do not exist."""
    there = {(_part(index["name"], "collectionGroups"), *_shape(index)) for index in existing}
    for index in wanted["indexes"]:
        if (index["collectionGroup"], *_shape(index)) not in there:
            arguments = (
                f"--field-config=field-path={field['fieldPath']},order={field['order'].lower()}"
                for field in index["fields"]
            )
            scope = index["queryScope"].lower().replace("_", "-")
            yield (index["collectionGroup"], "-", f"--query-scope={scope}", *arguments)


def fields(wanted: dict[str, Any], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the single-field overrides that differ: first the rule for all fields of a collection, as in the file."""
    there = {
        _field(field): sorted(_shape(index) for index in field.get("indexConfig", {}).get("indexes", ()))
        for field in existing
    }
    for override in wanted["fieldOverrides"]:
        group, path = override["collectionGroup"], override["fieldPath"]
        shapes = sorted((index["queryScope"], ((path, index["order"]),)) for index in override["indexes"])
        if there.get((group, path)) != shapes:
            # gcloud knows no other scope here than a single collection.
            arguments = (f"--index=order={index['order'].lower()}" for index in override["indexes"])
            yield (group, path, *(arguments if override["indexes"] else ("--disable-indexes",)))


def ttl(wanted: list[dict[str, str]], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the fields whose TTL policy is missing."""
    there = {_field(field) for field in existing if field.get("ttlConfig")}
    for policy in wanted:
        if (policy["collectionGroup"], policy["fieldPath"]) not in there:
            yield (policy["collectionGroup"], policy["fieldPath"], "--enable-ttl")


def _shape(index: dict[str, Any]) -> tuple[str, tuple[tuple[str, str], ...]]:
    paths = ((field["fieldPath"].strip("`"), field.get("order", "")) for field in index["fields"])
    return index["queryScope"], tuple(path for path in paths if path[0] != "__name__")


def _field(field: dict[str, Any]) -> tuple[str, str]:
    return _part(field["name"], "collectionGroups"), _part(field["name"], "fields").strip("`")


def _part(name: str, kind: str) -> str:
    segments = name.split("/")
    return segments[segments.index(kind) + 1]


if __name__ == "__main__":
    kind, file = sys.argv[1:]
    listed = sys.stdin.read().strip()
    kinds: dict[str, Callable[[Any, list[dict[str, Any]]], Iterator[Line]]]
    kinds = {"composite": composite, "fields": fields, "ttl": ttl}
    lines = kinds[kind](json.loads(Path(file).read_text(encoding="utf-8")), json.loads(listed) if listed else [])
    sys.stdout.writelines("\t".join(line) + "\n" for line in lines)
