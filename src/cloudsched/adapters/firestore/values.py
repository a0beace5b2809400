"""Convert documents to Firestore values and back, between the models and the protobuf messages directly.

Any Firestore client can read the values: instants are timestamps, nested objects are maps, enums are strings.
Firestore does not allow a list directly inside a list
(firebase.google.com/docs/firestore/manage-data/data-types), so such a list is stored as bytes that contain
its JSON. No document has bytes otherwise, so decoding is unambiguous.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from cloudsched.adapters.firestore import protos as messages
from cloudsched.domain.documents.document import list_stored_fields, to_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from cloudsched.adapters.google.channel import Message

Value: Message = messages.Value
"""The protobuf class itself: its proto-plus wrapper would take more time than the rest of a commit."""
Document: Message = messages.Document

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400


def encode_fields(fields: Message, data: Mapping[str, Any]) -> None:
    """Write the entries of `data` into the fields of a document or a map."""
    for key, value in data.items():
        _set(fields[key], value)


def encode_model(fields: Message, model: BaseModel, names: Collection[str] | None = None) -> None:
    """Write what is stored of a model into the fields of a document or a map."""
    values = model.__dict__
    for name, key, default, pack in list_stored_fields(type(model)):
        if names is not None and name not in names:
            continue
        value = values[name]
        if value is None or value is default or value == default:
            continue
        if pack is not None:
            value = pack(value)
        elif type(value) is timedelta:
            value = to_seconds(value)
        _set(fields[key], value)


def encode(value: object) -> Message:
    """Return a value as a Firestore value."""
    encoded = Value()
    _set(encoded, value)
    return encoded


def decode(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a document or a map. Timestamps are plain datetimes in UTC."""
    return {key: _get(value) for key, value in fields.items()}


def decode_instant(value: Message) -> datetime:
    """Return a timestamp as a datetime.

    Any other type gives `datetime.min`, from which a page token can continue.
    """
    instant = None
    if value.HasField("timestamp_value"):
        instant = _get(value)
    if isinstance(instant, datetime):
        return instant
    return datetime.min.replace(tzinfo=UTC)


def find_value(fields: Message, path: Sequence[str]) -> Message:
    """Return what is at a path in the fields of a document, or an empty value. The rest may be damaged."""
    *outer, last = path
    for name in outer:
        if name not in fields:
            return Value()
        fields = fields[name].map_value.fields
    return fields[last] if last in fields else Value()


def _set(target: Message, value: object) -> None:
    kind = type(value)
    setter = _SETTERS.get(kind)
    if setter is None:
        setter = _SETTERS[kind] = _find_setter(kind)
    setter(target, value)


def _set_enum(target: Message, value: Enum) -> None:
    target.string_value = value.value


def _set_in(name: str) -> Callable[[Message, object], None]:
    def set_it(target: Message, value: object) -> None:
        setattr(target, name, value)

    return set_it


def _set_null(target: Message, _: object) -> None:
    target.null_value = 0


def _set_instant(target: Message, value: datetime) -> None:
    since = value - _EPOCH
    stamp = target.timestamp_value
    stamp.seconds = since.days * _DAY + since.seconds
    stamp.nanos = since.microseconds * 1000


def _set_map(target: Message, value: Mapping[str, Any]) -> None:
    target.map_value.SetInParent()
    encode_fields(target.map_value.fields, value)


def _set_model(target: Message, value: BaseModel) -> None:
    target.map_value.SetInParent()
    encode_model(target.map_value.fields, value)


def _set_list(target: Message, value: Sequence[object]) -> None:
    target.array_value.SetInParent()
    for item in value:
        element = target.array_value.values.add()
        if isinstance(item, list | tuple):
            element.bytes_value = json.dumps(item, separators=(",", ":")).encode()
        else:
            _set(element, item)


_SETTERS: Final[dict[type, Callable[[Message, Any], None]]] = {
    str: _set_in("string_value"),
    bool: _set_in("boolean_value"),
    int: _set_in("integer_value"),
    float: _set_in("double_value"),
    NoneType: _set_null,
    datetime: _set_instant,
    dict: _set_map,
    list: _set_list,
    tuple: _set_list,
}


def _find_setter(kind: type) -> Callable[[Message, Any], None]:
    if issubclass(kind, Enum) and issubclass(kind, str):
        return _set_enum
    if issubclass(kind, BaseModel):
        return _set_model
    for known, setter in tuple(_SETTERS.items()):
        if issubclass(kind, known):
            return setter
    raise TypeError(f"Firestore cannot store a {kind.__name__}")


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
