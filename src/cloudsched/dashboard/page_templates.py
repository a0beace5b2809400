"""How templates become pages: what they say is escaped, and their layout is not sent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension


class _Unindent(Extension):
    """Drops the indentation of a template's lines. Besides, no line break is sent that follows ``{% … %}``."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the template's source without it."""
        del name, filename
        return re.sub(r"\n[ \t]+", "\n", source)


TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    extensions=[_Unindent],
)
"""Compiled once for all who are signed in: each has a `Dashboard` of their own."""
