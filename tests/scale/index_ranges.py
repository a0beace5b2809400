"""The index entries of a document, derived from ``firestore.indexes.json``, and their sequential ranges.

A composite index has an entry for a document that has all its fields, and one for each element of an array. A field has
single-field indexes in both directions, unless it, a map that holds it, or its collection's ``*`` is exempt; an
exemption lists the indexes that remain (firebase.google.com/docs/firestore/query-data/index-overview).

Entries whose values rise lie next to each other: Firestore writes some 500 a second to such a place. A range here is an
index up to its first rising value (an instant, or a text of `RISING_TEXTS`), with the values of the fields before that;
an index of single collections also has one for each document that a collection belongs to.

Documents lie in the order of their names, and so do the entries of an index that have the same values. If the ids of
tasks rise, what is created or run at about the same time lies together there as well: a task with all that is below it.
"""

from __future__ import annotations

import json
import runpy
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cloudsched.adapters.firestore.values import decode

INDEX_FILE = Path(__file__).parents[2] / "infra" / "firestore.indexes.json"
SCRIPT = INDEX_FILE.parent / "lib" / "firestore_indexes.py"
RISING_TEXTS = frozenset({"order"})
"""Texts that begin with an instant: those by which offers are ordered."""
NAMED_BY_TASKS = ("tasks", "offers")
"""The collections whose documents, with all below them, have the ids of tasks as their names."""
NAME = "__name__"
"""The last field of every index, and the only one in the order of documents."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Index:
    """One index: its fields, and those of them whose elements are indexed."""

    collection: str
    fields: tuple[str, ...]
    array: str | None = None
    is_descending: bool = False
    is_group: bool = False
    """Whether it has the documents of all collections of that name, whatever they belong to."""
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.collection, self.fields, self.is_descending, self.is_group)))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"{self.collection}({', '.join(self.fields)})"


@dataclass(frozen=True, slots=True)
class Range:
    """A place in an index that rising values are written to."""

    index: Index
    parent: str
    prefix: tuple[Any, ...]

    @property
    def shard(self) -> int | None:
        for path, value in zip(self.index.fields, self.prefix, strict=False):
            if path.rpartition(".")[2] == "shard":
                return int(value)
        return None

    @property
    def is_owned(self) -> bool:
        """Whether it is an owner's, a parent's, or that of one document's collection."""
        fields = self.index.fields[: len(self.prefix)]
        return bool(self.parent) or "owner" in fields or "parent.taskId" in fields

    def __str__(self) -> str:
        names = [f"{field}={value}" for field, value in zip(self.index.fields, self.prefix, strict=False)]
        path = f"{self.parent}/{self.index.collection}" if self.parent else self.index.collection
        return f"{path}({', '.join([*names, *self.index.fields[len(self.prefix) :]])})"


Entry = tuple[Index, str, tuple[Any, ...]]
"""An index, the document to which the collection belongs, and the values up to the first rising one."""


class Indexes:
    """The indexes of a database.

    Args:
        content: What the index file has, as the scripts choose it for a number of shards.
        has_rising_ids: Whether the ids of tasks rise, and with them the names of documents.
    """

    def __init__(self, content: Mapping[str, Any], *, has_rising_ids: bool = False) -> None:
        self._has_rising_ids = has_rising_ids
        self._composites: defaultdict[str, list[Index]] = defaultdict(list)
        for each in content["indexes"]:
            fields = tuple(field["fieldPath"] for field in each["fields"])
            array = next((field["fieldPath"] for field in each["fields"] if "arrayConfig" in field), None)
            is_group = each["queryScope"] == "COLLECTION_GROUP"
            index = Index(each["collectionGroup"], fields, array, is_group=is_group)
            self._composites[index.collection].append(index)
        self._overrides: defaultdict[str, dict[str, list[bool]]] = defaultdict(dict)
        for each in content["fieldOverrides"]:
            directions = [index.get("order") == "DESCENDING" for index in each["indexes"]]
            self._overrides[each["collectionGroup"]][each["fieldPath"]] = directions
        self._found: dict[tuple[str, frozenset[str]], list[Index]] = {}
        """The indexes of documents, by their collection and fields."""
        self._paths: dict[str, list[tuple[str, list[str]]]] = {}
        self._ranges: dict[tuple[Index, str, tuple[Any, ...]], Range] = {}

    @classmethod
    def of_shards(cls, count: int, *, has_rising_ids: bool = False) -> Indexes:
        """Return the indexes that the scripts create for a number of shards."""
        return cls(choose_indexes(count), has_rising_ids=has_rising_ids)

    def read(self, collection: str, message: Any) -> dict[str, Any]:  # noqa: ANN401 - a protobuf message
        """Return the fields of a document that an index may have, by their paths."""
        paths = self._paths.get(collection)
        if paths is None:
            paths = self._paths[collection] = self._find_paths(collection)
        if not paths:
            return dict(_iter_leaves(decode(message.fields)))
        found = {}
        for path, parts in paths:
            fields = message.fields
            for name in parts[:-1]:
                if name not in fields:
                    break
                fields = fields[name].map_value.fields
            else:
                if parts[-1] in fields:
                    found[path] = to_plain(fields[parts[-1]])
        return found

    def derive(self, collection: str, values: Mapping[str, Any], parent: str = "") -> set[Entry]:
        """Return the entries of a document, which is in a collection of `parent`.

        Indexes without a rising value are left out if the documents' names spread their entries.
        """
        key = (collection, frozenset(values))
        indexes = self._found.get(key)
        if indexes is None:
            indexes = self._found[key] = [*self._find_indexes(collection, values)]
        rising = self._has_rising_ids
        return {entry for index in indexes for entry in _cut(index, parent, values, has_rising_ids=rising)}

    def _find_indexes(self, collection: str, paths: Iterable[str]) -> Iterator[Index]:
        """Yield the indexes that have a document with these fields."""
        present = frozenset(paths)
        yield from (index for index in self._composites[collection] if present.issuperset(index.fields))
        overrides = self._overrides[collection]
        for path in present:
            for is_descending in _find_directions(overrides, path):
                yield Index(collection, (path,), None, is_descending)

    def find_ranges(self, before: set[Entry], after: set[Entry]) -> set[Range]:
        """Return the ranges in which a write adds or removes entries."""
        return {self._to_range(entry) for entry in before ^ after}

    def find_range_of_names(self, name: str) -> set[Range]:
        """Return the range that a document lies in itself, if the documents around it are written at the same time."""
        collection = name.split("/")[5]
        if not self._has_rising_ids or collection not in NAMED_BY_TASKS:
            return set()
        return {self._to_range((Index(collection, (NAME,)), "", (name,)))}

    def _to_range(self, entry: Entry) -> Range:
        index, parent, values = entry
        key = (index, parent, values[:-1])
        if (known := self._ranges.get(key)) is None:
            known = self._ranges[key] = Range(*key)
        return known

    def _find_paths(self, collection: str) -> list[tuple[str, list[str]]]:
        """Return the only fields that are indexed; nothing if all are."""
        overrides = self._overrides[collection]
        if overrides.get("*") != []:
            return []
        paths = {field for index in self._composites[collection] for field in index.fields}
        paths |= {path for path, directions in overrides.items() if directions}
        return [(path, path.split(".")) for path in sorted(paths)]


def choose_indexes(count: int) -> dict[str, Any]:
    """Return the content of the index file, as the scripts choose it for a number of shards."""
    content = json.loads(INDEX_FILE.read_text(encoding="utf-8"))
    chosen: dict[str, Any] = runpy.run_path(str(SCRIPT))["choose_indexes"](content, "one" if count == 1 else "many")
    return chosen


def to_plain(value: Any) -> Any:  # noqa: ANN401 - a protobuf value
    if value.HasField("string_value"):
        return value.string_value
    if value.HasField("timestamp_value"):
        stamp = value.timestamp_value
        return _EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1_000)
    return decode({"value": value})["value"]


def _find_directions(overrides: Mapping[str, list[bool]], path: str) -> list[bool]:
    parts = path.split(".")
    for size in range(len(parts), 0, -1):
        if (found := overrides.get(".".join(parts[:size]))) is not None:
            return found
    return overrides.get("*", [False, True])


def _iter_leaves(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in document.items():
        if isinstance(value, dict):
            yield from _iter_leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _cut(index: Index, parent: str, values: Mapping[str, Any], *, has_rising_ids: bool) -> list[Entry]:
    """Return an index's entries up to the first rising value, which may be the name at their end, if there is one."""
    parent = "" if index.is_group else parent
    kept: list[Any] = []
    elements = None
    for path in index.fields:
        value = values[path]
        if path == index.array:
            elements = value if isinstance(value, list) else []
            at = len(kept)
        kept.append(value if elements is None else _to_hashable(value))
        if isinstance(value, datetime) or path in RISING_TEXTS:
            break
    else:
        if not has_rising_ids:
            return []
        kept.append(NAME)
    if index.array is None:
        return [(index, parent, tuple(kept))]
    return [(index, parent, (*kept[:at], _to_hashable(each), *kept[at + 1 :])) for each in elements or ()]


def _to_hashable(value: Any) -> Any:  # noqa: ANN401 - any value
    return repr(value) if isinstance(value, list | dict) else value
