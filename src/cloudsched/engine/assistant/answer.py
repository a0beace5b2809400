"""What a language model may answer: the result, or a call of one tool. All else that it says is of no use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.json_limits import MAX_PAYLOAD, escape_surrogates, require_storable
from cloudsched.domain.documents.task import MAX_NAME
from cloudsched.engine.assistant.tools import write_arguments
from cloudsched.errors import InvalidInput, UnusableAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.engine.handlers.handler import Handler

MAX_RESULT: Final = 100_000
"""The longest result, in characters."""


def write_schema(tools: Sequence[Handler], *, may_call: bool) -> dict[str, Any]:
    """Return the schema of an answer: on the last turn, and without tools, it has to be the result."""
    content = {"type": "string", "description": "The result, for the person."}
    if not tools or not may_call:
        properties = {"decision": {"type": "string", "enum": ["answer"]}, "content": content}
        return {"type": "object", "properties": properties, "required": ["decision", "content"]}
    written = [write_arguments(each, number) for number, each in enumerate(tools)]
    schemas = [schema for schema, _ in written]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "enum": ["answer", "call"]},
            "content": content,
            "tool": {"type": "string", "enum": [each.name for each in tools]},
            "arguments": schemas[0] if len(schemas) == 1 else {"anyOf": schemas},
        },
        "required": ["decision"],
    }
    definitions = {name: each for _, own in written for name, each in own.items()}
    return {**schema, "$defs": definitions} if definitions else schema


def parse_answer(answer: object) -> dict[str, Any]:
    """Return what a step records of an answer: its ``content``, or a ``tool`` with ``arguments`` as a JSON text.

    The owner, the task and anything else that it may name are not looked at.

    Raises:
        UnusableAnswer: It has not the form.
    """
    if not isinstance(answer, dict):
        raise UnusableAnswer("schema", "it is no JSON object")
    if answer.get("decision") == "answer":
        content = answer.get("content")
        if not isinstance(content, str) or not content.strip():
            raise UnusableAnswer("schema", "it has no `content`, which has to be a text")
        if len(content) > MAX_RESULT:
            raise UnusableAnswer("schema", f"its `content` has more than {MAX_RESULT} characters")
        return {"content": escape_surrogates(content)}
    if answer.get("decision") != "call":
        raise UnusableAnswer("schema", '`decision` has to be "answer" or "call"')
    tool, arguments = answer.get("tool"), answer.get("arguments", {})
    if not isinstance(tool, str) or not tool or len(tool) > MAX_NAME:
        raise UnusableAnswer("schema", "it has no `tool`, which has to be the name of one")
    if not isinstance(arguments, dict):
        raise UnusableAnswer("schema", "its `arguments` are no JSON object")
    try:
        require_storable("arguments", arguments, MAX_PAYLOAD)
        return {"tool": escape_surrogates(tool), "arguments": json.dumps(arguments)}
    except (InvalidInput, RecursionError, ValueError) as error:
        raise UnusableAnswer("schema", f"its `arguments` cannot be passed on: {error}"[:500]) from error
