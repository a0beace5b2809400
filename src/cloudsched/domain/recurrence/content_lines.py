"""Content lines, of which iCalendar text consists: RFC 5545, section 3.1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LINE_OCTETS = 75
"""How long a line may be, without its end; a longer one continues on the next, after a space."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BREAKS = re.compile(r"\r\n|[\r\n\u2028\u2029\x85]")


def join_lines(lines: Iterable[str]) -> str:
    """Return lines as text: folded at 75 octets, each ended by CRLF."""
    return "".join(f"{fold_line(line)}\r\n" for line in lines)


def fold_line(line: str) -> str:
    """Return a line in pieces of at most 75 octets in UTF-8, none of which splits a character."""
    if len(line.encode()) <= LINE_OCTETS:
        return line
    pieces, piece, left = [], "", LINE_OCTETS
    for letter in line:
        length = len(letter.encode())
        if length > left:
            pieces.append(piece)
            piece, left = "", LINE_OCTETS - 1
        piece += letter
        left -= length
    return "\r\n ".join([*pieces, piece])


def unfold(text: str) -> list[str]:
    """Return the lines of a text, with those that were folded in one piece, and without empty ones."""
    return [line for line in re.sub(r"\r?\n[ \t]", "", text).splitlines() if line.strip()]


def escape_text(value: str) -> str:
    """Return a value of type TEXT (section 3.3.11): escaped, so that it can end neither its line nor its property."""
    value = _CONTROLS.sub("", value)
    value = value.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    return _BREAKS.sub(r"\\n", value)


def unescape_text(value: str) -> str:
    """Return what `escape_text` was given, but for control characters and kinds of line breaks."""
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] in "nN" else found[1], value)
