"""The limits of stored data: of JSON (payloads, results and contexts), of one document and of one request.

The limits are Firestore's (firebase.google.com/docs/firestore/quotas and …/storage-size), checked before
writing, whatever the store, so that data that passes a test on a laptop passes in the cloud: integers of 64
bits, maps nested at most 20 deep (some of which the document itself uses), no map key that is empty or looks
like ``__this__``, and a document of 1 MiB, which a task shares with its open runs. Firestore would refuse
larger data with an error that names no field, and a task that has grown too large could never be written
again.
"""

from __future__ import annotations

import json
import math
from collections import deque
from contextlib import suppress
from datetime import tzinfo
from functools import lru_cache, partial
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

from pydantic import ConfigDict, Field, Secret, SecretBytes, SecretStr, TypeAdapter, ValidationError
from pydantic_core import to_json, to_jsonable_python

from cloudsched.domain.documents.model_json import (
    PATH_MARK,
    find_change,
    find_equal_keys,
    find_writer,
    read_json,
    replace_models,
)
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

MAX_PAYLOAD = 128 * 1024
MAX_CONTEXT = 64 * 1024
MAX_CONTENT = 512 * 1024
"""The size of a task's payload, its source's context and an execution's result, in bytes as JSON."""
MAX_STORED = 900 * 1024
"""The size of a result as Firestore counts it: its record, of which the rest is small, may have 1 MiB."""
MAX_DEPTH = 16
MAX_KEY_BYTES = 1500
_INT_64 = range(-(2**63), 2**63)
_MASK = "**********"
"""The text that pydantic writes in place of a secret."""
_find_adapter: Final[Callable[[Any], TypeAdapter[Any]]] = lru_cache(maxsize=2048)(TypeAdapter)
_ANY_ADAPTER = TypeAdapter[Any](Any, config=ConfigDict(defer_build=True))


_FLAT: Final = TypeAdapter(
    dict[Annotated[str, Field(min_length=0)], str | int | bool | None],  # with a limit, lone surrogates are found
    config=ConfigDict(strict=True, defer_build=True),
)
"""What is the same in JSON, and most payloads are."""


def to_json_value(field: str, value: object, *, for_readers: bool = False) -> Any:  # noqa: ANN401 - any JSON
    """Convert a value to JSON types.

    A model becomes what it reads again, with all its fields: see `model_json`.

    For readers, such as those of a run's result, it becomes what Pydantic writes, with computed fields, with
    all fields of subclasses, and without fields with `exclude=True`, as long as the model can read that
    again. Raises InvalidInput.
    """
    if value is None or type(value) in {str, int, bool}:
        return value
    if type(value) is dict:
        try:
            return _FLAT.validate_python(value)
        except ValidationError:
            pass  # it takes more to convert it, or to say what is wrong
    try:
        plain = replace_models(field, value, partial(_write_model, for_readers=for_readers))
        encoded = to_jsonable_python(plain, by_alias=True, fallback=_refuse_unknown)
    except InvalidInput:
        raise
    except (
        ValueError,
        RecursionError,
    ) as error:  # what pydantic cannot convert, a lone surrogate, or a circle
        raise InvalidInput(field, str(error), "Use a pydantic model, or JSON values.") from error
    reject_masked_secrets(field, plain, encoded)
    equal = find_equal_keys(value)
    if equal is not None:
        problem = f"has the keys {equal[0]!r} and {equal[1]!r}, which are the same in JSON: one would be lost"
        raise InvalidInput(field, problem, "Use texts as keys.")
    return encoded


def _write_model(field: str, model: object, *, for_readers: bool) -> Any:  # noqa: ANN401 - any JSON
    kind: Any = type(model)
    writer = find_writer(kind, keeps_excluded=not for_readers)
    written = writer.write(model, _refuse_unknown)
    if _is_masked(written):
        _check_not_masked(field, writer.dump(model), written)
    if not for_readers:
        made = writer.expand(written)
        _require_same(field, model, kind, made)
        return made

    shown = kind.__pydantic_serializer__.to_python(
        model, mode="json", by_alias=True, fallback=_refuse_unknown, polymorphic_serialization=True
    )
    reject_masked_secrets(field, model, shown)

    with suppress(Exception):  # its validators are user code
        if writer.write(read_json(_find_adapter(kind), shown), _refuse_unknown) == written:
            return shown

    try:
        return writer.expand(writer.write(model, _refuse_unknown, keeps_subclasses=True))
    except InvalidInput:
        return shown


def _require_same(field: str, model: object, kind: Any, made: object) -> None:  # noqa: ANN401 - its class
    """Refuse a model that its class would read from its JSON as something else."""
    try:
        place = find_change(model, read_json(_find_adapter(kind), made))
    except Exception:  # noqa: BLE001 - validators are user code. Whoever reads what cannot be read says what is wrong.
        return
    if place is not None:
        problem = "would be read from its JSON as something else"
        hint = "Let its serializers write what its validators read, and let its field name the class of its value."
        raise InvalidInput(f"{field}{place}", problem, hint)


def _refuse_unknown(value: object) -> NoReturn:
    """Refuse what JSON cannot represent. What only stands for a value says how to get that."""
    describe = getattr(type(value), "describe_misuse", None)
    problem = f"Unable to serialize unknown type: {type(value)}"
    if isinstance(value, type | tzinfo):
        problem = f"is {value!r}, which has no form in JSON"
    raise ValueError(problem if describe is None else describe(value))


def reject_masked_secrets(field: str, value: object, encoded: object) -> None:
    """Check that the conversion to JSON has not masked secrets: pydantic replaces them with stars.

    A model that writes out a secret with a serializer of its own is accepted.
    """
    if _is_masked(encoded):
        _check_not_masked(
            field, _ANY_ADAPTER.dump_python(value, by_alias=True, polymorphic_serialization=True), encoded
        )


def _is_masked(encoded: object) -> bool:
    try:
        return _MASK.encode() in to_json(encoded)
    except ValueError:  # a lone surrogate: storing it is refused later, with a better message
        return False


def _check_not_masked(field: str, value: object, encoded: object) -> None:
    match value, encoded:
        case ((SecretStr() | SecretBytes() | Secret()), str()):
            if encoded == _MASK and value.get_secret_value() != _MASK:
                hint = "Give the name of the secret, and read it where it is needed: do not store it."
                raise InvalidInput(field, "is a secret, which would be stored as stars", hint)
        case dict(), dict() if len(value) == len(encoded):
            for item, (key, encoded_item) in zip(value.values(), encoded.items(), strict=True):
                _check_not_masked(f"{field}.{key.rpartition(PATH_MARK)[2]}", item, encoded_item)
        case ((list() | tuple() | set() | frozenset() | deque()), list()):
            for number, (item, encoded_item) in enumerate(zip(value, encoded, strict=False)):
                _check_not_masked(f"{field}.{number}", item, encoded_item)


def deep_copy_json(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a deep copy of a JSON value."""
    if isinstance(value, dict):
        return {key: item if isinstance(item, str) else deep_copy_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [deep_copy_json(item) for item in value]
    return value


def require_storable(field: str, value: object, max_bytes: int) -> int:
    """Check that a value is JSON that every store can hold, and return its size as JSON, in bytes."""
    place = (field,)
    hint = f"At most {max_bytes} bytes as JSON are allowed; {_ELSEWHERE}."
    if isinstance(value, list | tuple | dict):
        if _check_items(place, value, max_bytes) < 0:  # no value has less than a byte
            raise InvalidInput(field, f"has more than {max_bytes} bytes", hint)
    elif not (type(value) is str and value.isascii()):
        _check_scalar(place, value)
    size = json_size(value)
    if size > max_bytes:
        raise InvalidInput(field, f"has {size} bytes", hint)
    return size


_ELSEWHERE: Final = "store large data elsewhere and pass a reference to it"


def require_content(field: str, value: object) -> None:
    """Check that a value is JSON that every store can hold as an execution's result."""
    if MAX_EXPANSION * require_storable(field, value, MAX_CONTENT) <= MAX_STORED:
        return
    size = stored_size(value)
    if size > MAX_STORED:
        hint = f"At most {MAX_STORED} are allowed, and a number has 8; store large data elsewhere and pass a reference."
        raise InvalidInput(field, f"has {size} bytes as Firestore counts them", hint)


MAX_EXPANSION: Final = 4
"""The most bytes that Firestore counts for a character of a document's JSON: a digit and a comma are a number
of 8 bytes, a character may have 4."""


def max_size(value: object) -> int:
    """Return the size of a value in bytes: as JSON or as Firestore counts them, whichever is larger."""
    return max(json_size(value), stored_size(value))


_NUMBERS: Final = frozenset({int, float})
_LISTS: Final = (list, tuple)
_NO_LISTS: Final = _NUMBERS | {str, bool, NoneType, dict}


def stored_size(value: object) -> int:
    """Return the bytes of a value in Firestore (cloud.google.com/firestore/native/docs/storage-size).

    Firestore has no nested lists: a list directly inside a list is stored as the bytes of its JSON.
    """
    size = 0
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            size += 1 + (len(part) if part.isascii() else len(part.encode("utf-8", "surrogatepass")))
        elif type(part) in _NUMBERS:
            size += 8
        elif isinstance(part, dict):
            parts += part
            parts += part.values()
        elif isinstance(part, _LISTS):
            if _NO_LISTS.issuperset(map(type, part)):
                parts += part
                continue
            for item in part:
                if isinstance(item, _LISTS):
                    size += len(json.dumps(item, separators=(",", ":")))
                else:
                    parts.append(item)
        else:
            size += 1 if part is None or isinstance(part, bool) else 8  # an instant
    return size


def json_size(value: object) -> int:
    """Return the size of a value as JSON, in bytes."""
    try:
        return len(to_json(value))
    except ValueError:  # a lone surrogate
        return len(
            json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"),
        )


def escape_surrogates(text: str) -> str:
    """Return a text with lone surrogates, which UTF-8 cannot encode, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def truncate(text: str, max_bytes: int, *, keeps_end: bool = False) -> str:
    """Return the beginning (or the end) of a text, with at most that many bytes as UTF-8.

    It can be stored.
    """
    part = text[-max_bytes:] if keeps_end else text[:max_bytes]
    encoded = part.encode("utf-8", "backslashreplace")
    if keeps_end:
        cut = encoded[-max_bytes:]
    else:
        cut = encoded[:max_bytes]
    return cut.decode("utf-8", "ignore")  # without a character that was cut in two


def exception_text(error: BaseException) -> str:
    """Return an exception's text in a form that can be stored. Its own ``__str__`` may fail."""
    try:
        return escape_surrogates(str.__str__(str(error)))  # a text of a class of its own has its own code
    except BaseException:  # noqa: BLE001 - the exception's own code
        return "(its text cannot be read)"


_Place = tuple[str | int, ...]
"""The place of a value: the names that lead to it. Its path is written for an error only."""


def _to_path(place: _Place) -> str:
    return ".".join(map(str, place))


def _check_items(place: _Place, value: Sequence[object] | dict[Any, object], left: int) -> int:
    """Check the items of a list or a map.

    Return how many more values there may be. Below 0, some were not checked.
    """
    left -= len(value)
    if left < 0:
        return left
    if isinstance(value, dict):
        for key in value:
            if not (type(key) is str and key.isalnum() and key.isascii() and len(key) <= MAX_KEY_BYTES):
                _check_key(place, key)
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        if len(place) > MAX_DEPTH:
            raise InvalidInput(
                f"{_to_path(place)}.{name}",
                f"is nested more than {MAX_DEPTH} deep",
                "Flatten it.",
            )
        if isinstance(item, list | tuple | dict):
            left = _check_items((*place, name), item, left)
            if left < 0:
                return left
        elif not ((type(item) is str and item.isascii()) or (type(item) is int and item in _INT_64)):
            _check_scalar((*place, name), item)
    return left


def _check_scalar(place: _Place, value: object) -> None:
    match value:
        case None | bool():
            return
        case int():
            if value not in _INT_64:
                raise InvalidInput(_to_path(place), "is an integer beyond 64 bits", "Give it as a string.")
        case float():
            if not math.isfinite(value):
                raise InvalidInput(
                    _to_path(place),
                    f"is {value}, which JSON cannot represent",
                    "Give a finite number or null.",
                )
        case str():
            _check_text(place, value)
        case _:
            hint = "Use strings, numbers, booleans, lists, maps and null, or a pydantic model."
            raise InvalidInput(
                _to_path(place),
                f"is a {type(value).__name__}, which JSON cannot represent",
                hint,
            )


def _check_key(place: _Place, key: Any) -> None:  # noqa: ANN401 - an unchecked key
    if not isinstance(key, str):
        raise InvalidInput(
            _to_path(place),
            f"has the key {key!r}, which is not a string",
            "Use strings as keys.",
        )
    if not key or (key.startswith("__") and key.endswith("__")):
        raise InvalidInput(
            _to_path(place),
            f"has the key {key!r}",
            "Keys are not empty, and __names__ are reserved.",
        )

    if not key.isascii():
        _check_text(place, key)
    if len(key.encode()) > MAX_KEY_BYTES:
        raise InvalidInput(
            _to_path(place),
            f"has the key {key[:20]!r}…",
            f"A key has at most {MAX_KEY_BYTES} bytes.",
        )


def _check_text(place: _Place, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            _to_path(place), "has a lone surrogate, which UTF-8 cannot encode", "Repair the text."
        ) from None


MAX_DOCUMENT_BYTES = 1024 * 1024
"""The largest document, with its name, as Firestore counts it."""
MAX_REQUEST_BYTES = 10 * 1024 * 1024
"""The largest request, as it is sent: a commit is one. The number of documents is not limited any more: until
2023-03-29 it was 500 (cloud.google.com/firestore/docs/release-notes)."""

_MAX_CHARACTER_BYTES: Final = 4
_NAME_BYTES = 16
_FIELDS_BYTES = 32
"""The bytes that Firestore adds to a document's name, and to its fields."""
STORE_BYTES: Final = 256
"""The bytes of the fields that a store adds for itself."""


def document_size(path: Iterable[str], data: Mapping[str, Any]) -> int:
    """Return a document's size in bytes as Firestore counts it: of its path, and of its fields as stored."""
    name = sum(len(part.encode("utf-8", "surrogatepass")) + 1 for part in path) + _NAME_BYTES
    return name + stored_size(data) + _FIELDS_BYTES


def require_document_fits(
    path: Sequence[str],
    upper_bound: int,
    to_data: Callable[[], Mapping[str, Any]],
) -> None:
    """Check that a document is not too large for Firestore.

    `to_data` is called only if the upper bound, a size of the fields that is cheap to know, is too much.
    """
    most_of_name = sum(map(len, path)) * _MAX_CHARACTER_BYTES + len(path) + _NAME_BYTES
    if upper_bound + most_of_name + _FIELDS_BYTES + STORE_BYTES <= MAX_DOCUMENT_BYTES:
        return
    data = to_data()
    size = document_size(path, data) + STORE_BYTES
    if size > MAX_DOCUMENT_BYTES:
        field, part = find_largest_part(data)
        problem = f"has {part} of the {size} bytes that {'/'.join(path)} would have as Firestore counts them"
        hint = f"At most {MAX_DOCUMENT_BYTES} are allowed; store large data elsewhere and pass a reference to it."
        raise InvalidInput(field, problem, hint)


def find_largest_part(data: Mapping[str, Any]) -> tuple[str, int]:
    """Return the path and size of the part that makes a document large: it has most of the part around it."""
    path = list[str]()
    size = stored_size(data)
    value: Any = data
    while isinstance(value, dict | list | tuple) and value:
        parts: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        name, part = max(parts, key=lambda each: stored_size(each[1]))
        if path and stored_size(part) < size / 2:
            break
        path.append(str(name))
        value = part
        size = stored_size(part)
    return ".".join(path) or "(body)", size
