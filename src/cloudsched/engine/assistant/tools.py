"""The handlers that the assistant may call, and how they are shown to a language model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pydantic import PydanticInvalidForJsonSchema, PydanticUserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cloudsched.engine.handlers.handler import Handler
    from cloudsched.engine.handlers.registry import Registry

_MAX_SCHEMA: Final = 20_000
"""The largest schema of a tool's arguments, in characters; of a larger one only the names of the fields are shown."""


def list_open_tools(registry: Registry) -> list[Handler]:
    """Return the handlers that an app opens to the assistant, by their names.

    They are tools (``tool=True``), users may name them (``access="users"``), and a sentence says what they do
    (``draft="…"``). None of the three opens a handler by itself: the assistant acts with its owner's rights.
    """
    tools = (each for each in registry.for_users() if each.is_tool and each.draft is not None)
    return sorted(tools, key=lambda each: each.name)


def choose_tools(registry: Registry, names: Iterable[str]) -> list[Handler]:
    """Return those that a task names and that are open now."""
    named = set(names)
    return [each for each in list_open_tools(registry) if each.name in named]


def describe_tools(tools: Sequence[Handler]) -> list[dict[str, Any]]:
    """Return what a model is told of its tools."""
    return [{"name": each.name, "does": each.draft} for each in tools]


def write_arguments(tool: Handler, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON schema of a tool's arguments, and the definitions that it refers to.

    The number makes the names of the definitions differ from those of other tools.
    """
    if tool.payload is None:
        return {"type": "object", "properties": {}, "additionalProperties": False}, {}
    try:
        schema = tool.payload.json_schema(ref_template=f"#/$defs/t{number}_{{model}}")
    except (PydanticInvalidForJsonSchema, PydanticUserError):
        return {"type": "object"}, {}
    if len(json.dumps(schema, default=str)) > _MAX_SCHEMA:
        return {"type": "object", "properties": {name: {} for name in schema.get("properties", {})}}, {}
    definitions = {f"t{number}_{name}": each for name, each in schema.pop("$defs", {}).items()}
    return schema, definitions
