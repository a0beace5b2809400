"""The reference of the HTTP API as a page, generated from the OpenAPI document that a running API serves."""

from __future__ import annotations

import json
from typing import Any

from cloudsched.web.api.openapi import build_document

Json = dict[str, Any]


def render() -> str:
    """Return the page in Markdown: operations by their tag, then what they take and return."""
    document = build_document()
    parts = [
        "## Operation by operation\n",
        "Generated from the OpenAPI document, which a running API serves at `/openapi.json`.\n",
    ]
    for tag in document["tags"]:
        parts.append(f"## {tag['name']}\n\n{tag.get('description', '')}\n")
        parts += [
            _render_operation(method, path, each)
            for path, methods in document["paths"].items()
            for method, each in methods.items()
            if tag["name"] in each["tags"]
        ]
    parts.append("## Schemas\n\nYou may leave out every field that is not marked as required.\n")
    parts += [_render_schema(name, each) for name, each in sorted(document["components"]["schemas"].items())]
    return "\n".join(parts)


def _render_operation(method: str, path: str, operation: Json) -> str:
    lines = [f"### `{method.upper()} {path}`", "", operation["summary"], "", operation.get("description", ""), ""]
    if operation["parameters"]:
        lines += ["| parameter | in | type | |", "|---|---|---|---|"]
        lines += [
            f"| `{each['name']}` | {each['in']} | {_name_type(each['schema'])} | {_cell(each.get('description', ''))} |"
            for each in operation["parameters"]
        ]
        lines.append("")
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        lines += [f"Request body ({kind}): {_name_type(content['schema'])}", ""]
        for example in content.get("examples", {}).values():
            text = json.dumps(example["value"], indent=2)
            lines += [f"{example.get('summary', 'For example')}:", "", "```json", text, "```", ""]
    lines += ["| status | response | |", "|---|---|---|"]
    for status, response in operation["responses"].items():
        kinds = ", ".join(_name_type(each["schema"]) for each in response.get("content", {}).values())
        lines.append(f"| {status} | {kinds} | {_cell(response.get('description', ''))} |")
    return "\n".join([*lines, ""])


def _render_schema(name: str, schema: Json) -> str:
    lines = [f"### {name} {{ #schema-{name.lower()} }}", "", schema.get("description", ""), ""]
    if "properties" in schema:
        lines += ["| field | type | |", "|---|---|---|"]
        required = schema.get("required", [])
        for field, each in schema["properties"].items():
            mark = "**required**. " if field in required else ""
            lines.append(f"| `{field}` | {_name_type(each)} | {mark}{_cell(each.get('description', ''))} |")
    else:
        lines.append(_name_type(schema))
    return "\n".join([*lines, ""])


def _name_type(schema: Json) -> str:  # noqa: PLR0911 - one for each kind of schema
    """Return a type in words, with links to the schemas that it consists of."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#schema-{name.lower()})"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_name_type(each) for each in schema[several]))
    if "enum" in schema:
        return " ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = schema.get("type", "any JSON")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {_name_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_name_type(schema['additionalProperties'])}"
    bounds = [f"{word} {schema[key]}" for key, word in _BOUNDS if key in schema]
    return ", ".join([f"{kind} ({schema['format']})" if "format" in schema else kind, *bounds])


_BOUNDS = (("minimum", "at least"), ("maximum", "at most"), ("maxLength", "at most this many characters:"))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
