"""Convert documents to Firestore values and back, on the protobuf messages directly.

Any Firestore client can read the values: instants are timestamps, nested objects are maps, enums are strings.
Firestore does not allow a list directly inside a list (firebase.google.com/docs/firestore/manage-data/data-types), so
such a list is stored as bytes that contain its JSON. No document has bytes otherwise, so decoding is unambiguous.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cloudsched.adapters.firestore import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.adapters.google.channel import Message

Value: Message = messages.Value
"""The protobuf class itself: its proto-plus wrapper would take more time than the rest of a commit."""
Document: Message = messages.Document

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


def encode_fields(fields: Message, data: Mapping[str, Any]) -> None:
    """Write the entries of `data` into the fields of a document or a map.

    Raises:
        TypeError: Firestore cannot store a value of this type.
    """
    for key, value in data.items():
        _set(fields[key], value)


def encode(value: object) -> Message:
    """Return a value as a Firestore value.

    Raises:
        TypeError: Firestore cannot store a value of this type.
    """
    encoded = Value()
    _set(encoded, value)
    return encoded


def decode(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a document or a map; timestamps are plain datetimes in UTC."""
    return {key: _get(value) for key, value in fields.items()}


def decode_instant(value: Message) -> datetime:
    """Return a timestamp as a datetime; any other type as `datetime.min`, from which a page token can continue."""
    instant = _get(value) if value.HasField("timestamp_value") else None
    return instant if isinstance(instant, datetime) else datetime.min.replace(tzinfo=UTC)


def _set(target: Message, value: object, *, in_list: bool = False) -> None:  # noqa: C901 - one case per type
    match value:
        case str():
            target.string_value = value
        case bool():
            target.boolean_value = value
        case int():
            target.integer_value = value
        case float():
            target.double_value = value
        case None:
            target.null_value = 0
        case datetime():
            since = value - _EPOCH
            target.timestamp_value.seconds = since // _SECOND
            target.timestamp_value.nanos = since.microseconds * 1000
        case dict():
            target.map_value.SetInParent()
            encode_fields(target.map_value.fields, value)
        case list() | tuple() if in_list:
            target.bytes_value = json.dumps(value, separators=(",", ":")).encode()
        case list() | tuple():
            target.array_value.SetInParent()
            for item in value:
                _set(target.array_value.values.add(), item, in_list=True)
        case _:
            raise TypeError(f"Firestore cannot store a {type(value).__name__}")


def _get(value: Message) -> object:
    kind = value.WhichOneof("value_type")
    match kind:
        case "null_value":
            return None
        case "timestamp_value":
            stamp = value.timestamp_value
            return _EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)
        case "map_value":
            return decode(value.map_value.fields)
        case "array_value":
            return [_get(item) for item in value.array_value.values]
        case "bytes_value":
            return json.loads(value.bytes_value)
        case _:
            return getattr(value, kind)
