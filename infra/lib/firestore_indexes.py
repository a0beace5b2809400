# ruff: noqa: INP001 - a script among shell scripts, not a package
"""Compare the index and TTL files with a database, and print what is missing or not ready.

Usage: firestore_indexes.py KIND FILE < output of `gcloud firestore … list --format=json`

Each output line is one resource, in columns separated by tabs:

- ``composites``, ``overrides``, ``ttl-policies``: collection group, field (or ``-``), and the arguments for gcloud that
  create what the database lacks; ``added-overrides`` does not drop any single-field index that the database has
- ``unready-composites``, ``unready-overrides``: collection group, fields, and the state of an index that is not ready
- ``replaced-composites``, ``retired-composites``: collection group, fields, and the name of an index that many shards
  replace, or that only an earlier version needed
- ``retired-overrides``: as ``overrides``, of fields of which only an earlier version needed an index
- ``foreign-collections``, ``foreign-composites``, ``foreign-overrides``: what another program has in the database; for
  the first, FILE is resources.json, and the input what listCollectionIds answers

SHARDS in the environment is ``one``, ``growing`` (the file's indexes, and those of more shards) or ``many`` (without
those that shards replace: ranges of rising values that begin with neither an owner, a parent nor a shard). CLIENTS says
that web and mobile clients read the database: the index of their lists is needed, too.

With COLLECTION_PREFIX in the environment, the files' collections have it, and nothing else of the database counts.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Line = tuple[str, ...]
PREFIX = os.environ.get("COLLECTION_PREFIX", "")
RISING = {"createdAt", "unlisted.createdAt", "nextExecutionTime", "wakeAt", "removeAt", "order", "writtenAt"}
"""The fields whose values rise."""


def add_prefix(content: Any, prefix: str) -> Any:  # noqa: ANN401 - JSON
    """Return a file's content with a prefix before each collection."""
    if isinstance(content, list):
        return [add_prefix(each, prefix) for each in content]
    if isinstance(content, dict):
        pairs = {key: add_prefix(value, prefix) for key, value in content.items()}
        return pairs | (
            {"collectionGroup": prefix + content["collectionGroup"]} if "collectionGroup" in content else {}
        )
    return content


def choose_indexes(content: dict[str, Any], shards: str, *, has_clients: bool = False) -> dict[str, Any]:
    """Return the indexes of the file that a database has with so many shards, and perhaps with clients that read it."""
    more = [*content["sharded"]["indexes"]] if shards != "one" else []
    more += content["clients"]["indexes"] if has_clients else []
    grown = {**content, "indexes": [*content["indexes"], *more]}
    return drop_replaced(grown) if shards == "many" else grown


def drop_replaced(content: dict[str, Any]) -> dict[str, Any]:
    """Return the indexes without those that shards replace."""
    overrides = [
        {**each, "indexes": []} if is_replaced(each["collectionGroup"], [each["fieldPath"]]) else each
        for each in content["fieldOverrides"]
    ]
    kept = [each for each in content["indexes"] if not is_replaced(each["collectionGroup"], _get_paths(each))]
    return {**content, "indexes": kept, "fieldOverrides": overrides}


def is_replaced(group: str, paths: list[str]) -> bool:
    """Whether an index is a range of rising values that begins with neither an owner, a parent, a pause nor a shard."""
    is_led = any(path in {"owner", "parent.taskId", "pauseId"} or path.rpartition(".")[2] == "shard" for path in paths)
    return group in {"tasks", "offers"} and paths[-1] in RISING and not is_led


def find_replaced_composites(expected: dict[str, Any], existing: list[dict[str, Any]]) -> Iterator[Line]:  # noqa: ARG001 - as the others
    """Yield the composite indexes of the database that shards replace."""
    for index in existing:
        group = _get_segment(index["name"], "collectionGroups")
        paths = [path for path in (each.strip("`") for each in _get_paths(index)) if path != "__name__"]
        if is_replaced(group[len(PREFIX) :], paths):
            yield (group, ", ".join(paths), index["name"])


def find_retired_composites(expected: dict[str, Any], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the composite indexes of the database that an earlier version needed, and this one does not."""
    needed = {(index["collectionGroup"], *_get_shape(index)) for index in expected["indexes"]}
    retired = {(index["collectionGroup"], *_get_shape(index)) for index in expected["retired"]["indexes"]} - needed
    for index in existing:
        group = _get_segment(index["name"], "collectionGroups")
        if (group, *_get_shape(index)) in retired:
            paths = [path.strip("`") for path in _get_paths(index)]
            yield (group, ", ".join(path for path in paths if path != "__name__"), index["name"])


def find_retired_overrides(expected: dict[str, Any], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the fields with an index that an earlier version needed, and this one does not."""
    retired = {(each["collectionGroup"], each["fieldPath"]) for each in expected["retired"]["fieldOverrides"]}
    for field in existing:
        key = _get_field_key(field)
        if key in retired and field.get("indexConfig", {}).get("indexes"):
            yield (*key, "--disable-indexes")


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


def find_foreign_collections(table: dict[str, Any], existing: dict[str, Any]) -> Iterator[Line]:
    """Yield the collections of the database that are not cloudsched's: without records of sweeps, none is."""
    known = {PREFIX + each for each in table["collections"]}
    found = {each for each in existing.get("collectionIds", ()) if each.startswith(PREFIX)}
    for each in sorted(found - known if f"{PREFIX}sweeps" in found else found):
        yield ("the collection", each)


def find_foreign_composites(expected: dict[str, Any], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the composite indexes of the database that no version of cloudsched has made."""
    own = [*expected["indexes"], *expected["retired"]["indexes"]]
    known = {(index["collectionGroup"], *_get_shape(index)) for index in own}
    for index in existing:
        group = _get_segment(index["name"], "collectionGroups")
        if (group, *_get_shape(index)) not in known:
            yield ("an index of", group, ", ".join(path.strip("`") for path in _get_paths(index) if path != "__name__"))


def find_foreign_overrides(expected: dict[str, Any], existing: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the fields whose indexes or TTL policy no version of cloudsched has set."""
    file = Path(__file__).parents[1] / "firestore.ttl.json"
    policies = add_prefix(json.loads(file.read_text(encoding="utf-8")), PREFIX)
    known: dict[tuple[str, str], set[Any]] = {(each["collectionGroup"], each["fieldPath"]): set() for each in policies}
    for each in (*expected["fieldOverrides"], *expected["retired"]["fieldOverrides"]):
        group, path = each["collectionGroup"], each["fieldPath"]
        own = {(index["queryScope"], ((path, index["order"]),)) for index in each["indexes"]}
        known[group, path] = known.get((group, path), set()) | own
    for field in existing:
        group, path = _get_field_key(field)
        config = field.get("indexConfig", {})
        inherited = config.get("usesAncestorConfig")  # then it lists those of all fields
        shapes = set() if inherited else {_get_shape(index) for index in config.get("indexes", ())}
        if group != "__default__" and not ((group, path) in known and shapes <= known[group, path]):
            yield ("indexes or a TTL policy of", group, path)


def _get_paths(index: dict[str, Any]) -> list[str]:
    return [field["fieldPath"] for field in index["fields"]]


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
    kinds: dict[str, Callable[[Any, Any], Iterator[Line]]]
    kinds = {
        "composites": find_missing_composites,
        "overrides": find_missing_overrides,
        "added-overrides": find_added_overrides,
        "ttl-policies": find_missing_ttl_policies,
        "unready-composites": find_unready_composites,
        "unready-overrides": find_unready_overrides,
        "replaced-composites": find_replaced_composites,
        "retired-composites": find_retired_composites,
        "retired-overrides": find_retired_overrides,
        "foreign-collections": find_foreign_collections,
        "foreign-composites": find_foreign_composites,
        "foreign-overrides": find_foreign_overrides,
    }
    content = json.loads(Path(file).read_text(encoding="utf-8"))
    if "indexes" in content:
        shards = "growing" if kind.startswith("foreign") else os.environ.get("SHARDS", "one")
        content = choose_indexes(content, shards, has_clients=bool(os.environ.get("CLIENTS")))
    existing = json.loads(listed) if listed else []
    if PREFIX and isinstance(existing, list):
        existing = [each for each in existing if _get_segment(each["name"], "collectionGroups").startswith(PREFIX)]
    lines = kinds[kind](add_prefix(content, PREFIX), existing)
    sys.stdout.writelines("\t".join(line) + "\n" for line in lines)
