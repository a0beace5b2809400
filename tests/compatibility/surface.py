"""What users build upon, as JSON: the API, Python's names, commands, settings and extras.

``released.json`` is that of the last release. ``python -m tests.compatibility.surface`` writes that of a new one.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click
from pydantic import BaseModel

from cloudsched import errors
from cloudsched.cli.main import ExitCode, cloudsched
from cloudsched.config.access import Access
from cloudsched.config.settings import AssistantSettings, ModelSettings, Prices, Sandbox, Settings
from cloudsched.config.variables import list_settings
from cloudsched.web.api.openapi import build_document

ROOT: Final = Path(__file__).parents[2]
RELEASED: Final = Path(__file__).with_name("released.json")
MODULES: Final = ("cloudsched", "cloudsched.client", "cloudsched.testing", "cloudsched.language")
_WORDS: Final = frozenset({"description", "summary", "example", "examples", "title", "tags"})
"""What a document says beside its promises."""
_NAMED: Final = frozenset({"properties", "schemas", "paths", "responses", "content", "headers"})
"""The keys below which names are free: a property may be called title."""
_PLAIN: Final = (type(None), bool, int, float, str, timedelta, Enum)


def describe() -> dict[str, Any]:
    """Return the present surface."""
    document = _strip(build_document())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    sections = (Settings, Access, Sandbox, Prices, ModelSettings, AssistantSettings)
    example = (ROOT / "infra" / "config.example.sh").read_text("utf-8")
    pythons = [each for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    return {
        "operations": {
            f"{method.upper()} {path}": {**operation, "responses": _leave_errors_out(operation["responses"])}
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        },
        "schemas": document["components"]["schemas"],
        "python": dict(sorted(_describe_names())),
        "commands": dict(sorted(_describe_commands(cloudsched, ()))),
        "exit codes": {each.name: each.value for each in ExitCode},
        "settings": sorted(
            {each.variable for section in sections for each in list_settings(section).values()}
            | {*re.findall(r"^([A-Z_]+)=", example, re.MULTILINE)}
        ),
        "extras": sorted(project["optional-dependencies"]),
        "scripts": sorted(project["scripts"]),
        "pythons": sorted(each.rpartition(" ")[2] for each in pythons),
    }


def _leave_errors_out(answers: dict[str, Any]) -> dict[str, Any]:
    return {status: answer for status, answer in answers.items() if status < "4"}


def _strip(part: Any, above: str = "") -> Any:  # noqa: ANN401 - JSON
    if isinstance(part, dict):
        kept = part.items() if above in _NAMED else ((key, each) for key, each in part.items() if key not in _WORDS)
        return {key: _strip(each, "" if above in _NAMED else key) for key, each in kept}
    return [_strip(each) for each in part] if isinstance(part, list) else part


def _describe_names() -> Iterator[tuple[str, Any]]:
    for module in MODULES:
        for name in import_module(module).__all__:
            yield f"{module}.{name}", _describe(getattr(import_module(module), name))
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.CloudschedError):
            yield f"cloudsched.errors.{name}", _describe(kind)


def _describe(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any public name
    if not isinstance(value, type):
        return {"is": "function", "takes": _list_parameters(value)} if callable(value) else {"is": "value"}
    found: dict[str, Any] = {"is": "class"}
    shown = _list_shown().get(value.__name__.removeprefix("Async"), ())
    names = {name for name in shown if hasattr(value, name)}
    if issubclass(value, BaseException):
        names |= {name for name in dir(value) if _is_ours(value, name)}
        found["bases"] = [each.__name__ for each in value.__mro__[1:-1]]
    found["members"] = {name: _describe_member(value, name) for name in sorted(names)}
    if issubclass(value, Enum):
        found["members"] = {each.name: each.value for each in value}
    elif issubclass(value, BaseModel):
        found["members"] |= dict.fromkeys(value.model_fields)
    elif is_dataclass(value):
        found["members"] |= dict.fromkeys(each.name for each in fields(value) if not each.name.startswith("_"))
    is_made = not issubclass(value, (Enum, BaseModel)) and not getattr(value, "_is_protocol", False)
    if is_made and "__init__" in vars(value):
        found["takes"] = _list_parameters(value)
    return found


@cache
def _list_shown() -> dict[str, list[str]]:
    """Return the members of each class that its page names: others are for cloudsched itself."""
    page = (ROOT / "docs" / "reference" / "python.md").read_text("utf-8")
    shown: dict[str, list[str]] = {}
    for place, names in re.findall(r"<!-- members: (\S+) ([^>]*?) ?-->", page):
        shown.setdefault(place.rpartition(".")[2], []).extend(names.split())
    return shown


def _is_ours(kind: type, name: str) -> bool:
    home = next(each for each in kind.__mro__ if name in vars(each) or each is object)
    return not name.startswith("_") and home.__module__.startswith("cloudsched")


def _describe_member(kind: type, name: str) -> list[list[Any]] | None:
    """Return the parameters of a method. None for an attribute."""
    member = getattr(kind, name)
    return _list_parameters(member) if callable(member) and not isinstance(member, type) else None


def _list_parameters(called: Callable[..., Any]) -> list[list[Any]]:
    """Return the parameters: names, kinds, and whether they may be left out or what they then are."""
    found: list[list[Any]] = []
    for each in inspect.signature(called).parameters.values():
        if each.name in {"self", "cls"}:
            continue
        typed = re.fullmatch(r"Unpack\[(\w+)\]", str(each.annotation))
        if typed:
            found += [[name, "KEYWORD_ONLY", "…"] for name in sorted(_find_typed_dict(typed[1]).__annotations__)]
            continue
        default: str | None = None
        if each.default is not each.empty:
            default = repr(each.default) if isinstance(each.default, _PLAIN) else "…"
        if each.kind in {each.VAR_KEYWORD, each.VAR_POSITIONAL}:
            default = "…"
        found.append([each.name, each.kind.name, default])
    return found


def _find_typed_dict(name: str) -> Any:  # noqa: ANN401 - a TypedDict
    for module in ("cloudsched.domain.transitions.task_arguments", "cloudsched.client.filters"):
        import_module(module)
    homes = [each for key, each in sys.modules.items() if key.startswith("cloudsched.") and hasattr(each, name)]
    return getattr(homes[0], name)


def _describe_commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    context = click.Context(command, info_name=command.name)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            if not below.hidden:
                yield from _describe_commands(below, (*path, name))
    shown: dict[str, Any] = {"options": {}, "arguments": []}
    for each in command.params:
        about: dict[str, Any] = {"required": each.required, "nargs": each.nargs, "multiple": each.multiple}
        if isinstance(each.type, click.Choice):
            about["choices"] = sorted(map(str, each.type.choices))
        if isinstance(each, click.Argument):
            shown["arguments"].append({"name": each.name, **about})
        elif isinstance(each, click.Option) and not each.hidden:
            for spelled in (*each.opts, *each.secondary_opts):
                shown["options"][spelled] = {"is_flag": each.is_flag, **about}
    yield " ".join(path) or "cloudsched", shown


def main() -> None:
    """Write the surface of a release."""
    sections = [f"{json.dumps(name)}: {_write(section)}" for name, section in describe().items()]
    RELEASED.write_text("{\n" + ",\n".join(sections) + "\n}\n", "utf-8")


def _write(section: dict[str, Any] | list[str]) -> str:
    """Return JSON with a line for each member, so that a difference can be read."""
    if isinstance(section, list):
        return "[\n" + ",\n".join(map(json.dumps, section)) + "\n]"
    lines = [f"{json.dumps(name)}: {json.dumps(section[name], sort_keys=True)}" for name in sorted(section)]
    return "{\n" + ",\n".join(lines) + "\n}"


if __name__ == "__main__":
    main()
