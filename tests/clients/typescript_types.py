"""Generates the types of the TypeScript client from the API's OpenAPI document.

python -m tests.clients.typescript_types
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_pascal

from cloudsched.cli.schema import declare
from cloudsched.web.api.openapi import build_document

FOLDER = Path(__file__).parents[2] / "clients/typescript"
GENERATED = FOLDER / "src/types.ts"
_HEAD = """// The API's schemas, generated from its OpenAPI document: python -m tests.clients.typescript_types
// Instants are texts of RFC 3339, durations numbers of seconds.
"""


def generate() -> str:
    """Return the file: all schemas, and the query parameters of each operation that has some."""
    document = build_document()
    return f"{_HEAD}\n{declare({**document['components']['schemas'], **_read_queries(document)})}"


def _read_queries(document: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for methods in document["paths"].values():
        for operation in methods.values():
            parameters = [each for each in operation["parameters"] if each["in"] == "query"]
            if not parameters:
                continue
            found[f"{to_pascal(operation['operationId'])}Query"] = {
                "type": "object",
                "description": operation["summary"],
                "properties": {
                    each["name"]: {**each["schema"], "description": each["description"]} for each in parameters
                },
                "required": [each["name"] for each in parameters if each.get("required")],
            }
    return found


if __name__ == "__main__":
    GENERATED.write_text(generate(), "utf-8")
