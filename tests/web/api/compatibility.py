"""What a new version of the API would break for callers of the last released one; docs/reference/compatibility.md.

    python -m tests.web.api.compatibility

writes the document as it is now over the released one: a part of each release.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cloudsched.web.api.openapi import build_document

Json = dict[str, Any]
RELEASED = Path(__file__).with_name("released_openapi.json")
_WORDS = frozenset(
    {
        "description",
        "summary",
        "example",
        "examples",
        "title",
        "links",
        "tags",
        "info",
        "servers",
        "headers",
        "security",
    }
)
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems")


def compact(content: Any, *, names: bool = False) -> Any:  # noqa: ANN401 - any JSON
    """Return the document without its words and problems; `names` says that keys are names, and not keywords."""
    if isinstance(content, dict):
        named = {"properties", "schemas", "paths", "responses", "headers", "content"}
        return {
            key: compact(value, names=key in named and not names)
            for key, value in content.items()
            if (names or key not in _WORDS) and not (key.startswith(("4", "5")) and len(key) == 3)
        }
    return [compact(each) for each in content] if isinstance(content, list) else content


def write(document: Json) -> str:
    """Return a compact document as text, with a line for each operation and each schema."""
    parts = {
        "paths": {
            f"{path} {method}": each for path, many in document["paths"].items() for method, each in many.items()
        },
        "schemas": document["components"]["schemas"],
    }
    blocks = []
    for name, entries in parts.items():
        lines = (f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in entries.items())
        blocks.append(f'"{name}": {{\n' + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def describe() -> Json:
    """Return the API as it is now, in the form of the released one."""
    found: Json = json.loads(write(compact(build_document())))
    return found


def find_breaks(old: Json, new: Json) -> list[str]:
    """Return what would fail for callers of the older API, one line each. Both documents are compact."""
    return [*_Comparison(old["schemas"], new["schemas"]).compare(old["paths"], new["paths"])]


class _Comparison:
    """Compares operations with the schemas that they lead to, each once in each direction."""

    def __init__(self, old: Json, new: Json) -> None:
        self._old = old
        self._new = new
        self._seen = set[tuple[str, str, bool]]()

    def compare(self, old: Json, new: Json) -> Iterator[str]:
        for name, operation in old.items():
            later = new.get(name)
            if later is None:
                yield f"{name} is gone"
                continue
            yield from self._parameters(name, operation.get("parameters", []), later.get("parameters", []))
            yield from self._bodies(name, operation.get("requestBody"), later.get("requestBody"))
            for status, response in operation["responses"].items():
                if status.startswith("2"):
                    yield from self._response(f"{name} {status}", response, later["responses"].get(status))

    def _parameters(self, name: str, old: list[Json], new: list[Json]) -> Iterator[str]:
        known = {(each["in"], each["name"]): each for each in old}
        later = {(each["in"], each["name"]): each for each in new}
        for key, each in known.items():
            if key not in later:
                yield f"{name} no longer takes {key[1]}"
            else:
                yield from self._schema(f"{name} {key[1]}", each["schema"], later[key]["schema"], is_request=True)
        for key, each in later.items():
            if each.get("required") and not known.get(key, {}).get("required"):
                yield f"{name} requires {key[1]}"

    def _bodies(self, name: str, old: Json | None, new: Json | None) -> Iterator[str]:
        if new is not None and new.get("required") and not (old or {}).get("required"):
            yield f"{name} requires a body"
        for kind, content in ((old or {}).get("content") or {}).items():
            later = ((new or {}).get("content") or {}).get(kind)
            if later is None:
                yield f"{name} no longer takes {kind}"
            else:
                yield from self._schema(f"{name} body", content["schema"], later["schema"], is_request=True)

    def _response(self, name: str, old: Json, new: Json | None) -> Iterator[str]:
        if new is None:
            yield f"{name} is no longer answered"
            return
        for kind, content in old.get("content", {}).items():
            later = new.get("content", {}).get(kind)
            if later is None:
                yield f"{name} is no longer {kind}"
            else:
                yield from self._schema(name, content["schema"], later["schema"], is_request=False)

    def _schema(self, place: str, old: Json, new: Json, *, is_request: bool) -> Iterator[str]:
        names = old.get("$ref", ""), new.get("$ref", "")
        if names[0] and names[1]:
            if (*names, is_request) in self._seen:
                return
            self._seen.add((*names, is_request))
        old, new = self._resolve(self._old, old), self._resolve(self._new, new)
        yield from self._unions(place, old, new, is_request=is_request)
        if old.get("type") != new.get("type") and new.get("type") is not None:
            yield f"{place} was {old.get('type')}, and is {new['type']}"
            return
        if is_request:
            yield from _narrowed(place, old, new)
        if "items" in old and "items" in new:
            yield from self._schema(f"{place}[]", old["items"], new["items"], is_request=is_request)
        yield from self._properties(place, old, new, is_request=is_request)

    def _unions(self, place: str, old: Json, new: Json, *, is_request: bool) -> Iterator[str]:
        """Compare what may be one of several; the order of the parts is theirs."""
        before, after = old.get("anyOf", []), new.get("anyOf", [])
        if is_request and len(after) < len(before) and after:
            yield f"{place} takes fewer kinds of values"
        for one, other in zip(before, after, strict=False):
            yield from self._schema(place, one, other, is_request=is_request)

    def _properties(self, place: str, old: Json, new: Json, *, is_request: bool) -> Iterator[str]:
        before, after = old.get("properties", {}), new.get("properties", {})
        required, later = set(old.get("required", [])), set(new.get("required", []))
        for field, schema in before.items():
            if field not in after:
                yield f"{place}.{field} is gone"
            else:
                yield from self._schema(f"{place}.{field}", schema, after[field], is_request=is_request)
        if is_request:
            yield from (f"{place}.{field} is required" for field in sorted(later - required))
        else:
            yield from (f"{place}.{field} may be missing" for field in sorted(required - later) if field in after)

    @staticmethod
    def _resolve(schemas: Json, schema: Json) -> Json:
        name = schema.get("$ref", "").rpartition("/")[2]
        return schemas[name] if name else schema


def _narrowed(place: str, old: Json, new: Json) -> Iterator[str]:
    """Yield how a newer request accepts less than an older one."""
    accepted = new.get("enum") or old.get("enum") or []
    gone = [each for each in old.get("enum", ()) if each not in accepted]
    if gone or ("enum" in new and "enum" not in old):
        yield f"{place} no longer takes {gone or 'any text'}"
    if "pattern" in new and new["pattern"] != old.get("pattern"):
        yield f"{place} has another pattern"
    checks: tuple[tuple[tuple[str, ...], Callable[[float, float], bool]], ...] = (
        (_UPPER, lambda before, after: after < before),
        (_LOWER, lambda before, after: after > before),
    )
    for keywords, is_narrower in checks:
        for keyword in keywords:
            if keyword in new and (keyword not in old or is_narrower(old[keyword], new[keyword])):
                yield f"{place} has a stricter {keyword}"


if __name__ == "__main__":
    RELEASED.write_text(write(compact(build_document())), "utf-8")
