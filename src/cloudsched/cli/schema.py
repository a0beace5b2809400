"""``cloudsched schema``: prints the schemas of handlers' payloads, as JSON or as declarations of TypeScript."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import click

from cloudsched.cli.options import client_options, quiet_option
from cloudsched.local.untrusted_text import to_json_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cloudsched.client.client import Client

Json = dict[str, Any]
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_WIDTH: Final = 110


def declare(schemas: Mapping[str, Json]) -> str:
    """Return a declaration for each schema, exported under its name, the last segment of references to it."""
    return "\n\n".join(_declare(name, schema) for name, schema in schemas.items()) + "\n"


def declare_payloads(payloads: Mapping[str, Json | None]) -> str:
    """Return the types of handlers' payloads, and ``Payloads``, which has them by the handlers' names.

    A schema of None takes any object.
    """
    named: dict[str, Json] = {}
    fields: dict[str, Json] = {}
    for handler, schema in payloads.items():
        if schema is None:
            fields[handler] = {"type": "object"}
            continue

        prefix = _to_type_name(handler)
        parts = schema.get("$defs", {})
        names = {"": f"{prefix}Payload"} | {each: f"{prefix}{_to_type_name(each)}" for each in parts}
        for each, content in parts.items():
            named[names[each]] = _rename(content, names)
        named[names[""]] = _rename({key: value for key, value in schema.items() if key != "$defs"}, names)
        fields[handler] = {"$ref": names[""]}

    about = "The payload of each handler, by its name."
    whole = {"type": "object", "description": about, "properties": fields, "required": [*fields]}
    return declare({**named, "Payloads": whole})


def _declare(name: str, schema: Json) -> str:
    comment = _comment(schema.get("description", ""), "")
    if "properties" in schema and schema.get("type", "object") == "object" and "anyOf" not in schema:
        return f"{comment}export interface {name} {_object(schema, '')}"
    written = write_type(schema)
    space = "" if written.startswith("\n") else " "
    return f"{comment}export type {name} ={space}{written};"


_SIMPLE: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def write_type(schema: Any, indent: str = "") -> str:  # noqa: ANN401, PLR0911 - any JSON; one for each kind
    """Return a schema as the expression of a type."""
    match schema:
        case {"$ref": str(target)}:
            return target.rpartition("/")[2]
        case {"const": value}:
            return json.dumps(value)
        case {"enum": list(values)}:
            return _join([json.dumps(each, ensure_ascii=False) for each in values], indent)
        case {"anyOf": list(kinds)} | {"oneOf": list(kinds)}:
            return _join([write_type(each, indent) for each in kinds], indent)
        case {"allOf": list(kinds)}:
            return " & ".join(f"({write_type(each, indent)})" for each in kinds)
        case {"type": list(kinds)}:
            return _join([write_type({**schema, "type": each}, indent) for each in kinds], indent)
    return _write_value(schema, indent)


def _write_value(schema: Any, indent: str) -> str:  # noqa: ANN401 - any JSON
    match schema:
        case {"type": "array", "prefixItems": list(items)}:
            return f"[{', '.join(write_type(each, indent) for each in items)}]"
        case {"type": "array"}:
            return f"Array<{write_type(schema.get('items', {}), indent)}>"
        case {"type": "object"} | {"properties": _}:
            return _object(schema, indent)
        case {"type": str(kind)}:
            return _SIMPLE[kind]
    return "unknown"


def _object(schema: Json, indent: str) -> str:
    properties: Json = schema.get("properties", {})
    more = schema.get("additionalProperties")
    if not properties:
        value = write_type(more, indent) if isinstance(more, dict) else "unknown"
        return f"Record<string, {value}>"

    inner = f"{indent}  "
    required = set(schema.get("required", ()))
    lines = []
    for name, each in properties.items():
        comment = _comment(each.get("description", ""), inner)
        mark = "" if name in required else "?"
        lines.append(f"{comment}{inner}{_key(name)}{mark}: {write_type(each, inner)};")
    if more is True:
        lines.append(f"{inner}[name: string]: unknown;")
    return "\n".join(["{", *lines, f"{indent}}}"])


def _join(kinds: Sequence[str], indent: str) -> str:
    unique = [*dict.fromkeys(kinds)]
    line = " | ".join(unique)
    if len(indent) + len(line) <= _WIDTH or "\n" in line:
        return line
    return "".join(f"\n{indent}  | {each}" for each in unique)


def _key(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)


def _comment(text: str, indent: str) -> str:
    words = " ".join(text.split()).replace("``", "`").replace("*/", "*\\/")
    return f"{indent}/** {words} */\n" if words else ""


def _rename(schema: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    match schema:
        case {"$ref": str(target)}:
            own = target.rpartition("/")[2]
            return {"$ref": names["" if target == "#" else own]}
        case dict():
            return {key: _rename(value, names) for key, value in schema.items()}
        case list():
            return [_rename(each, names) for each in schema]
    return schema


def _to_type_name(name: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", name)
    made = "".join(word[:1].upper() + word[1:] for word in words) or "Handler"
    return made if made[0].isalpha() else f"Handler{made}"


@click.command("schema")
@click.argument("handlers", nargs=-1, metavar="[HANDLER]...")
@quiet_option
@click.option("--typescript", is_flag=True, help="Print types of TypeScript, and not JSON schemas.")
@client_options
def schema(client: Client, *, handlers: tuple[str, ...], typescript: bool) -> None:
    """Print the schemas of the payloads of all handlers that you may name, or of some.

    As one JSON object by the handlers' names, null for a handler that takes any object. The payload of an event that a
    handler has declared is there as HANDLER.EVENT.
    """
    found: dict[str, dict[str, Any] | None] = {}
    for each in client.handlers():
        found[each.name] = each.payload_schema
        found |= {f"{each.name}.{event}": schema for event, schema in (each.event_schemas or {}).items()}

    unknown = [name for name in handlers if name not in found]
    if unknown:
        known = ", ".join(sorted(found)) or "none"
        raise click.UsageError(f"No handler is called {unknown[0]!r}. There are: {known}.")

    chosen = {name: found[name] for name in (handlers or found)}
    if typescript:
        click.echo(declare_payloads(chosen), nl=False)
    else:
        click.echo(to_json_line(chosen))
