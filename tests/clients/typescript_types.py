"""Generates the types of the TypeScript client from the API's OpenAPI document, and its verbs from their table.

python -m tests.clients.typescript_types
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel, to_pascal

from cloudsched.cli.schema import declare
from cloudsched.client import Client
from cloudsched.domain.documents.verbs import Verb
from cloudsched.web.api.openapi import build_document

FOLDER = Path(__file__).parents[2] / "clients/typescript"
GENERATED = FOLDER / "src/api.ts"
_HEAD = """// The API's schemas and verbs, generated from its OpenAPI document: python -m tests.clients.typescript_types
// Instants are texts of RFC 3339, durations numbers of seconds.
import type { ChangeOptions } from "./client.js";
"""
_VERBS_HEAD = """
/** The verbs on one task, with the arguments of the Python client. */
export abstract class TaskVerbs {
  /** @internal */
  protected abstract _change(path: string, body?: object, options?: ChangeOptions, query?: object): Promise<Task>;
"""


def generate() -> str:
    """Return the file: all schemas, and the query parameters of each operation that has some."""
    document = build_document()
    verbs = "".join(_write_verb(verb, document) for verb in Verb if verb.path)
    schemas = declare({**document["components"]["schemas"], **_read_queries(document)})
    return f"{_HEAD}\n{schemas}{_VERBS_HEAD}{verbs}}}\n"


def _write_verb(verb: Verb, document: dict[str, Any]) -> str:
    """Return a verb's method: its arguments are the parameters of the Python method, and the other ones are options."""
    path, model = f"/v1/tasks/{{taskId}}{verb.path}", verb.traits.body
    schema = {} if model is None else document["components"]["schemas"][model.__name__]["properties"]
    kinds = {name: f'{model and model.__name__}["{name}"]' for name in schema} | {"validateOnly": "boolean"}
    kinds |= {name: "Date | string" for name, each in schema.items() if each.get("format") == "date-time"}
    known = inspect.signature(getattr(Client, verb.method)).parameters.values()
    given = [each for each in known if each.name not in {"self", "etag", "idempotency_key"}]
    options = [to_camel(each.name) for each in given if each.kind is each.KEYWORD_ONLY]
    arguments = [
        f"{to_camel(each.name)}{'' if each.default is each.empty else '?'}: {kinds.get(to_camel(each.name), 'string')}"
        for each in given
        if each.kind is not each.KEYWORD_ONLY
    ]
    arguments.append(f"{{ {', '.join(options)}, ...options }}" if options else "options")
    arguments[-1] += "".join([": ChangeOptions", *(f" & {{ {name}?: {kinds[name]} }}" for name in options), " = {}"])
    url = path.replace("{", "${encodeURIComponent(").replace("}", ")}")
    body = f"{{ {', '.join(schema)} }}" if schema else "undefined"
    query = ', { validateOnly: validateOnly ? "true" : undefined }' if "validateOnly" in options else ""
    answered = document["paths"][path]["post"]
    result = "Task | undefined" if "204" in answered["responses"] else "Task"
    return f"""
  /** {answered["summary"]} */
  {to_camel(verb.method)}({", ".join(arguments)}): Promise<{result}> {{
    return this._change(`{url}`, {body}, options{query});
  }}
"""


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
