"""The tables of docs/reference/settings.md: variables as the code declares them, and those of infra/config.example.sh.

The page says which row stands where; ``python .ci/site/setting_tables.py`` writes each row's meaning and default.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, Field
from pathlib import Path
from typing import Any

from marks import write

from cloudsched.config.access import Access
from cloudsched.config.settings import AssistantSettings, ModelSettings, Prices, Sandbox, Settings
from cloudsched.config.variables import Setting, list_settings

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "settings.md"
EXAMPLE = ROOT / "infra" / "config.example.sh"
ROW = re.compile(r"^\| `([A-Z_]+)` \|.*$", re.MULTILINE)
_ASSIGNMENT = re.compile(r"^((?:# .*\n)+)([A-Z_]+)=(.*)$", re.MULTILINE)
_EMPTY = {'""', "()"}


def put(text: str) -> str:
    """Return the page with each row as the code or the example says it. A row of an unknown setting is an error."""
    rows = render_rows()
    return ROW.sub(lambda row: rows[row[1]], text)


def find_missing(text: str) -> list[str]:
    """Return the settings that do not have exactly one row."""
    named = ROW.findall(text)
    return [name for name in render_rows() if named.count(name) != 1]


def render_rows() -> dict[str, str]:
    """Return the row of each setting: its name, its meaning and its default."""
    rows = {}
    for section in (Settings, Access, Sandbox, Prices, ModelSettings, AssistantSettings):
        for name, about in list_settings(section).items():
            default = _render_default(section.__dataclass_fields__[name], about)
            rows[about.variable] = f"| `{about.variable}` | {about.about} | {default} |"
    for comment, name, value in _ASSIGNMENT.findall(EXAMPLE.read_text("utf-8")):
        meaning = " ".join(line.removeprefix("# ") for line in comment.splitlines() if not line.endswith("---"))
        meaning = re.sub(r"\bdocs/(\w+)/([\w-]+)\.md", r"[\2](../\1/\2.md)", meaning)
        rows[name] = (
            f"| `{name}` | {meaning} | {'—' if value in _EMPTY else '`' + value.strip(chr(34) + chr(39)) + '`'} |"
        )
    return rows


def _render_default(each: Field[Any], about: Setting) -> str:
    if about.shown_default is not None:
        return about.shown_default
    if each.default is MISSING:
        raise SystemExit(f"{about.variable} has no default")
    text = "" if each.default is None else about.kind.format(each.default)
    if isinstance(each.default, bool) and not text:
        text = "off"
    return f"`{text}`" if text else "—"


if __name__ == "__main__":
    write(PAGE, put, find_missing)
