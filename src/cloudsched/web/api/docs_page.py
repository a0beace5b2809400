"""``/docs``: the OpenAPI document as an HTML page, rendered here so that it needs no script and no other server."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from werkzeug.wrappers import Response

Json = dict[str, Any]

_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
summary { cursor: pointer; padding: .4rem 0 }
code, pre { font: 14px/1.4 ui-monospace, monospace; overflow-wrap: anywhere }
pre { overflow: auto; padding: .8rem; border: 1px solid #8885 }
table { border-collapse: collapse; width: 100% }
td { border-top: 1px solid #8885; padding: .3rem .6rem; vertical-align: top }
.method { display: inline-block; width: 4.5rem; font-weight: bold }
"""


def render_page(document: Json) -> Response:
    """Return the page. Its policy forbids loading or running anything, whatever the document contains."""
    info = document["info"]
    operations = "".join(
        _render_operation(method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    schemas = "".join(
        _render_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items())
    )
    title = f"{info['title']} {info['version']}"
    root = document["servers"][0]["url"].rstrip("/")
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1>"
        f'<p>{escape(info["description"])} For programs: <a href="{escape(root)}/openapi.json">openapi.json</a>.</p>'
        f"<h2>Operations</h2>{operations}<h2>Schemas</h2>{schemas}</html>"
    )
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(text, headers=headers)


def _render_operation(method: str, path: str, operation: Json) -> str:
    parameters = "".join(
        _render_row(f"{each['name']} ({each['in']})", each["description"], each["schema"])
        for each in operation["parameters"]
    )
    bodies = "".join(
        _render_row(f"body: {kind}", "", content["schema"])
        for kind, content in operation.get("requestBody", {}).get("content", {}).items()
    )
    answers = "".join(_render_response(status, answer) for status, answer in operation["responses"].items())
    return (
        f'<details><summary><span class="method">{method}</span><code>{escape(path)}</code> — '
        f"{escape(operation['summary'])}</summary><table>{parameters}{bodies}{answers}</table></details>"
    )


def _render_response(status: str, answer: Json) -> str:
    schema: Json = next((content["schema"] for content in answer.get("content", {}).values()), {})
    return _render_row(status, answer["description"], schema)


def _render_row(name: str, about: str, schema: Json) -> str:
    return f"<tr><td><code>{escape(name)}</code><td>{escape(about)}<td>{_render_type(schema)}"


def _render_type(schema: Json) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    return f"<code>{escape(json.dumps(schema, ensure_ascii=False))}</code>" if schema else ""


def _render_schema(name: str, schema: Json) -> str:
    text = escape(json.dumps(schema, indent=2, ensure_ascii=False))
    return f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary><pre>{text}</pre></details>'
