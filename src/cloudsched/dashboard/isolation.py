"""Keeps a text of somebody's from changing how the page around it reads.

A title may hold letters that run from right to left, or characters that turn what follows around (U+202E). Templates
need not know: each text that they print between tags is isolated, and characters that nobody sees are written out.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from jinja2.ext import Extension
from jinja2.lexer import Token
from markupsafe import Markup

from cloudsched.dashboard.words import only_if, show_unseen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2.lexer import TokenStream

_PLAIN: Final = frozenset({"title", "textarea", "option", "script", "style"})
"""The elements in which a browser reads no tags."""
_SPOKEN: Final = frozenset({"title", "aria-label", "placeholder", "data-abs"})
"""The attributes whose texts are shown or read out, and never sent back."""
_TAG: Final = re.compile(r'<(/?)([a-zA-Z][a-zA-Z0-9]*)|>|(?:([a-z-]+)=)?"')


def isolate(value: object) -> object:
    """Return a text as it is shown between tags. Markup and numbers are returned as they are."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    if value.isascii() and value.isprintable():
        return value
    text = show_unseen(value)
    if text == value and not _runs_left(text):
        return value
    return Markup("<bdi>{}</bdi>").format(text)


def _runs_left(text: str) -> bool:
    """Return whether a text has letters that run from right to left."""
    return not text.isascii() and any(unicodedata.bidirectional(each) in {"R", "AL", "AN"} for each in text)


class Isolation(Extension):
    """Passes each value that a template prints between tags through `isolate`.

    In ``<title>`` and in attributes that are shown, it passes through `show_unseen`. Values in other attributes and in
    text areas stay as they are, because they are sent back.
    """

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """Yield a template's tokens, with a filter around each value."""
        place = _Place()
        name = ""
        for token in stream:
            if token.type == "data":
                place.read(token.value)
            if token.type == "variable_end" and name:
                yield Token(token.lineno, "rparen", ")")
                yield Token(token.lineno, "pipe", "|")
                yield Token(token.lineno, "name", name)
            yield token
            if token.type == "variable_begin":
                name = place.name_filter()
                if name:
                    yield Token(token.lineno, "lparen", "(")


class _Place:
    """Where a template's text has come to: in a tag, in one of its attributes, or between tags."""

    def __init__(self) -> None:
        self._is_in_tag = False
        self._is_quoted = False
        self._attribute = ""
        self._plain = ""

    def read(self, html: str) -> None:
        """Go on by a piece of HTML."""
        for found in _TAG.finditer(html):
            if found[0].endswith('"'):
                self._is_quoted = self._is_in_tag and not self._is_quoted
                self._attribute = only_if(self._is_quoted, found[3] or "")
            elif found[0] == ">":
                self._is_in_tag = self._is_in_tag and self._is_quoted
            elif not self._is_in_tag:
                self._is_in_tag = True
                self._note(found[2].lower(), is_end=bool(found[1]))

    def _note(self, tag: str, *, is_end: bool) -> None:
        if is_end and tag == self._plain:
            self._plain = ""
        elif not is_end and tag in _PLAIN:
            self._plain = tag

    def name_filter(self) -> str:
        """Return the filter for a value that is printed here. Empty for none."""
        if self._attribute in _SPOKEN:
            return "unseen"
        if self._is_in_tag or self._plain in {"textarea", "script", "style"}:
            return ""
        return "unseen" if self._plain else "isolate"


FILTERS: Final = {"isolate": isolate, "unseen": show_unseen}
