"""The public names of docs/reference/python.md: signatures and meanings, from the code and its docstrings.

The page says what stands where, and has the examples; ``python .ci/site/python_names.py`` writes the rest into it.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from marks import list_parts, put_parts, write

import cloudsched.errors
from cloudsched.app import shared
from cloudsched.errors import CloudschedError

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "python.md"
MODULES: Final = ("cloudsched", "cloudsched.client", "cloudsched.testing", "cloudsched.language")
WHOLE: Final = ("App", "Context", "Embedded", "TaskReference", "client.Client", "testing.Simulation")
"""The classes all of whose public members are on the page."""
INTERNAL: Final = {"note_author", "progress_notes", "replace_progress", "report", "run_flow", "forget", "prepare"}
INTERNAL |= {"face", "marked", "put_by_key"}
"""Their members that only cloudsched itself uses."""
MADE_FOR_YOU: Final = {
    "AppLike",
    "AsyncAppLike",
    "AsyncContext",
    "CallHandle",
    "Context",
    "Embedded",
    "Settings",
    "TaskLike",
}
"""The classes that are not called by those who use them, or whose parameters have a page of their own."""
_CODE: Final = ("::", "    ", ">>>")
"""How examples begin: the page has its own, which build on each other."""
_SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):\n((?:[ ]+.*\n?|\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^(\**\w[\w., ]*): ((?:.*\n?)(?:[ ]+.*\n?)*)", re.MULTILINE)


def put(text: str) -> str:
    """Return the page with each part as the code has it."""
    writers = {"class": _write_class, "members": _write_members, "errors": _write_errors, "values": _write_values}
    return put_parts(text, writers)


def find_missing(text: str) -> list[str]:
    """Return the public names that the page does not have."""
    shown = {words.split()[0] for name in ("class", "values") for words in list_parts(text, name)}
    named = {f"{module}.{each}" for module in MODULES for each in import_module(module).__all__}
    missing = [each for each in sorted(named - shown) if f"`{each.rpartition('.')[2]}`" not in text]
    for kind in (f"cloudsched.{each}" for each in WHOLE):
        parts = [words.split() for words in list_parts(text, "members")]
        members = {member for words in parts if words[0] == kind for member in words[1:]}
        missing += [f"{kind}.{each}" for each in sorted(_list_members(_find(kind)) - members - INTERNAL)]
    return missing


def _find(place: str) -> Any:  # noqa: ANN401 - any public name
    module, _, name = place.rpartition(".")
    return getattr(import_module(module), name)


def _list_members(kind: type) -> set[str]:
    public = {each: inspect.getattr_static(kind, each, None) for each in dir(kind) if not each.startswith("_")}
    public = {name: each for name, each in public.items() if not isinstance(each, shared)}  # the client's show them
    # A cached property is an attribute: the docstring of its class tells of it.
    return {name for name, each in public.items() if inspect.getdoc(each) and not isinstance(each, cached_property)}


def _write_class(words: str) -> str:
    """Return what a class or a function is, and what it takes."""
    value = _find(words)
    name = words.rpartition(".")[2]
    called = value.__init__ if inspect.isclass(value) else value
    ours = getattr(called, "__module__", "").startswith("cloudsched") and name not in MADE_FOR_YOU
    signature = _render_signature(name, called, is_class=inspect.isclass(value)) if ours else name
    shown = f"**`{signature}`**: "
    return shown + _render_text(inspect.getdoc(value) or "", called if ours else None, "")


def _write_members(words: str) -> str:
    place, *names = words.split()
    kind = _find(place)
    return "\n".join(_render_member(kind, name) for name in names)


def _render_member(kind: type, name: str) -> str:
    member = inspect.getattr_static(kind, name)
    member = getattr(member, "__func__", member)
    member = inspect.unwrap(member)
    about = inspect.getdoc(member) or ""
    if isinstance(member, property):
        return f"- **`{name}`**: {_render_text(about, None, '    ')}"
    return f"- **`{_render_signature(name, member)}`**: {_render_text(about, member, '    ')}"


def _render_signature(name: str, function: Any, *, is_class: bool = False) -> str:  # noqa: ANN401 - any callable
    """Return a call with its parameters and their defaults, and the type that it returns."""
    shown: list[str] = []
    has_star = False
    for each in inspect.signature(function).parameters.values():
        if each.name in {"self", "cls", "unknown"}:
            continue
        if each.kind is each.KEYWORD_ONLY and not has_star:
            shown.append("*")
        has_star = has_star or each.kind in {each.KEYWORD_ONLY, each.VAR_POSITIONAL}
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f"={_render_default(each.default)}"
        shown.append(f"{stars}{each.name}{default}")
    returned = "" if is_class else _render_type(inspect.signature(function).return_annotation)
    is_decorator = returned.startswith("Callable[[Callable")
    arrow = f" -> {returned}" if returned and not is_decorator and returned != "None" else ""
    return f"{'@' if is_decorator else ''}{name}({', '.join(shown)}){arrow}"


def _render_default(value: object) -> str:
    match value:
        case Enum():
            return repr(value.value)
        case datetime():
            return "START"
        case timedelta():
            return f"timedelta(seconds={value.total_seconds():g})"
        case tuple():
            return f"({', '.join(map(_render_default, value))})"
        case type():
            return value.__name__
    return repr(value)


def _render_type(annotation: object) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    text = re.sub(r"^Flow\[(.*)\]$", r"\1", text.strip("'\""))
    return re.sub(r"^Listing\[(.*)\]$", r"Iterator[\1]", text)


def _render_text(about: str, function: Any, indent: str) -> str:  # noqa: ANN401 - any callable
    """Return a docstring as Markdown, with what is said about each parameter in a list."""
    types = {} if function is None else {each.name: each for each in inspect.signature(function).parameters.values()}
    head = _SECTION.split(about)[0].strip()
    parts = [_join(each) for each in head.split("\n\n") if not each.startswith(_CODE)]
    text = f"\n\n{indent}".join(parts) if not indent else " ".join(parts)
    lines: list[str] = []
    for section, body in _SECTION.findall(about):
        plain = textwrap.dedent(body)
        if section in {"Returns", "Yields"}:
            text += f" Returns {_join(plain)[0].lower()}{_join(plain)[1:]}"
            continue
        for name, meaning in _ENTRY.findall(plain):
            if name == "unknown":
                continue
            kind = _render_type(types[name].annotation) if section == "Args" and name in types else ""
            shown = f"{name}: {kind}" if kind and kind != "Any" else name
            lines.append(f"{indent}- {'Raises ' if section == 'Raises' else ''}`{shown}`: {_join(meaning)}")
    return "\n".join([text, *(["", *lines] if not indent and lines else lines)])


def _join(text: str) -> str:
    """Return a paragraph in one line, its code and links as Markdown has them."""
    plain = re.sub(r"``(.+?)``", r"`\1`", " ".join(text.split()))
    return re.sub(r"`?\bdocs/([\w/-]+\.md)\b`?", _link, plain)


def _link(path: re.Match[str]) -> str:
    title = re.search(rf"- (?:\d+\. )?([^:\n]+): {re.escape(path[1])}$", _NAVIGATION, re.MULTILINE)
    target = path[1].removeprefix("reference/") if path[1].startswith("reference/") else f"../{path[1]}"
    return f"[{title[1] if title else path[1]}]({target})"


_NAVIGATION = (ROOT / "mkdocs.yml").read_text("utf-8")


def _write_errors(_words: str) -> str:
    """Return the tree of errors, each with its first sentence."""

    def write(kind: type[CloudschedError], depth: int) -> list[str]:
        about = _join((inspect.getdoc(kind) or "").split("\n\n")[0])
        below = [each for each in kind.__subclasses__() if each.__module__ == cloudsched.errors.__name__]
        return [
            f"{'    ' * depth}- `{kind.__name__}`: {about}",
            *(line for each in below for line in write(each, depth + 1)),
        ]

    return "\n".join(write(CloudschedError, 0))


def _write_values(words: str) -> str:
    """Return what a small class is, and its fields or members with what is said about each."""
    value, name = _find(words), words.rpartition(".")[2]
    value = getattr(value, "__pydantic_generic_metadata__", {}).get("origin") or value
    if issubclass(value, Enum):
        members = ", ".join(f"`{each}`" for each in value.__members__)
        return f"**`{name}`**: {_render_text(inspect.getdoc(value) or '', None, '')} {members}."
    tree = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    about = inspect.getdoc(value) or ""
    told = {name for _, body in _SECTION.findall(about) for name, _ in _ENTRY.findall(textwrap.dedent(body))}
    lines = [f"**`{name}`**: {_render_text(about, None, '')}", *(() if told else ("",))]
    body = getattr(tree, "body", [])
    for statement, after in zip(body, [*body[1:], None], strict=True):
        target = getattr(statement, "target", None) or next(iter(getattr(statement, "targets", ())), None)
        if not isinstance(target, ast.Name) or target.id.startswith(("_", "model_config", "identified_by")):
            continue
        has_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        kind = f": {ast.unparse(statement.annotation)}" if isinstance(statement, ast.AnnAssign) else ""
        if target.id in told or kind.startswith(": ClassVar"):
            continue
        text = f": {_join(str(after.value.value))}" if has_text else ""  # type: ignore[union-attr]
        lines.append(f"- `{target.id}{kind}`{text}")
    return "\n".join(lines)


if __name__ == "__main__":
    write(PAGE, put, find_missing)
