"""Which commits Firestore refuses for their indexes, by its documented limits. The emulator indexes everything.

* A document has at most 40,000 index entries. An index has one for a document that has all of its fields; one on an
  array's elements has one for each of them.
* An entry has at most 7.5 KiB.
* Of a text or of bytes only the first 1,500 bytes are indexed. Production takes a longer one, and from then on its
  queries may be wrong: that is refused here.
* A commit has at most 10 MiB. (The emulator takes 4 MB.)

The emulator itself refuses documents of more than 1 MiB, values that are nested too deeply, and reserved names.

Sources: firebase.google.com/docs/firestore/quotas and …/storage-size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.adapters.firestore.index_rules import Index, Indexes

MAX_REQUEST_BYTES = 10 * 1024 * 1024
MAX_ENTRIES = 40_000
MAX_ENTRY_BYTES = 7_680
MAX_INDEXED_BYTES = 1_500
_ELEMENTS = "[]"
_NAME_BYTES, _ENTRY_BYTES = 16, 32
"""What is counted beside a name's parts, and beside an entry's."""


def why_commit_refused(request: Any, indexes: Indexes) -> str | None:  # noqa: ANN401 - a protobuf message
    """Return why production would refuse a ``CommitRequest``, or None."""
    if request.ByteSize() > MAX_REQUEST_BYTES:
        return f"The commit has {request.ByteSize()} bytes; {MAX_REQUEST_BYTES} are the maximum."
    reasons = (_why_document_refused(write.update, indexes) for write in request.writes if write.update.fields)
    return next((reason for reason in reasons if reason is not None), None)


def _why_document_refused(document: Any, indexes: Indexes) -> str | None:  # noqa: ANN401 - a protobuf message
    path = document.name.partition("/documents/")[2].split("/")
    entries = 0
    for index in _list_indexes(path[-2], indexes):
        values = [_find(document.fields, field) for field, _ in index.fields]
        if not all(values):
            continue
        for (field, _), found in zip(index.fields, values, strict=True):
            if max(map(_value_size, found)) > MAX_INDEXED_BYTES + 1:
                return f"{field} of {'/'.join(path)} is longer than what {index} indexes of it."
        entries += math.prod(map(len, values))
        size = 2 * _name_size(path) + sum(max(map(_value_size, each)) for each in values) + _ENTRY_BYTES
        if size > MAX_ENTRY_BYTES:
            return f"An entry of {index} has {size} bytes; {MAX_ENTRY_BYTES} are the maximum."
    if entries > MAX_ENTRIES:
        return f"{'/'.join(path)} has {entries} index entries; {MAX_ENTRIES} are the maximum."
    return None


def _list_indexes(collection: str, indexes: Indexes) -> Iterable[Index]:
    return (each for each in indexes if each.collection == collection and each.fields)


def _find(fields: Mapping[str, Any], path: str) -> Sequence[Any]:
    """Return what an index has of a document: nothing, one value, or an array's elements."""
    *parents, last = path.removesuffix(_ELEMENTS).split(".")
    for each in parents:
        fields = fields[each].map_value.fields if each in fields else {}
    if last not in fields:
        return ()
    return list(fields[last].array_value.values) if path.endswith(_ELEMENTS) else [fields[last]]


def _name_size(path: Sequence[str]) -> int:
    return sum(len(part.encode()) + 1 for part in path) + _NAME_BYTES


def _value_size(value: Any) -> int:  # noqa: ANN401 - a protobuf message
    match value.WhichOneof("value_type"):
        case "string_value":
            return len(value.string_value.encode()) + 1
        case "bytes_value":
            return len(value.bytes_value)
        case "null_value" | "boolean_value":
            return 1
        case "array_value":
            return sum(map(_value_size, value.array_value.values))
        case "map_value":
            return sum(len(key.encode()) + 1 + _value_size(item) for key, item in value.map_value.fields.items())
        case _:
            return 8
