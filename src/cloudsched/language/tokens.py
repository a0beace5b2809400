"""Split a phrase into tokens: words, numbers, ordinals, clock times, dates, quoted text and marks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

WORD, NUMBER, ORDINAL, CLOCK, DATE, PAIR, QUOTE, PATH, MARK = (
    *("word", "number", "ordinal", "clock", "date", "pair", "quote", "path", "mark"),
)
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "`": "`"}

_PATTERN = re.compile(
    r"""
      (?P<date>\d{4}-\d{1,2}-\d{1,2})(?![\d/-])T?
    | (?P<clock>\d{1,2}:\d{2}(?::\d{2})?(?!\d|:\d)|\d{1,2}h\d{2}(?![\dh]))Z?
    | (?P<ordinal>\d{1,4}(?:st|nd|rd|th))(?![^\W\d])
    | (?P<pair>\d{1,4}[/.]\d{1,4}(?:[/.]\d{2,4})?|\d{1,2}-\d{1,2}(?:-\d{2,4})?)(?![\d/:]|[.-]\d)
    | (?P<path>[^\W\d]\w*(?:/[^\W\d][\w+-]*)+|(?:UTC|GMT)[+-]\d{1,2}(?::\d{2})?)
    | (?P<half>(?<![^\W\d])[ap]\.\s?m\b\.?)
    | (?P<number>\d+)
    | (?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*'?)
    | (?P<mark>\S)
    """,  # noqa: RUF001 -- people type the typographic apostrophe
    re.VERBOSE | re.IGNORECASE,
)


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: One of the names above.
        text: What was typed, in lower case and with plain apostrophes.
        start: Where it begins in the phrase.
        end: Where it ends.
        value: The numbers of a number, an ordinal, a clock time, a date or a pair such as ``3/4``.
        glued: It follows the token before without a space.
    """

    kind: str
    text: str
    start: int
    end: int
    value: tuple[int, ...] = ()
    glued: bool = False


def tokenise(text: str, *, ordinal_dot: bool, splits: Callable[[str], bool]) -> list[Token]:
    """Return the tokens of a phrase.

    Args:
        text: The phrase.
        ordinal_dot: Whether a number with a full stop is an ordinal, as in German.
        splits: Decides whether a word and the digits after it are two tokens (``Feb13``).
    """
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        closing = _QUOTES.get(text[at])
        end = text.find(closing, at + 1) if closing else -1
        if end > at + 1:
            tokens.append(Token(QUOTE, text[at + 1 : end], at, end + 1))
            at = end + 1
            continue
        result = _PATTERN.match(text, at)
        if result is None:  # a lone combining character and the like
            at += 1
            continue
        glued = bool(tokens) and tokens[-1].end == at
        token = _make_token(result, text, glued=glued, ordinal_dot=ordinal_dot)
        at = token.end
        if token.text != ".":
            tokens.append(token)
    return _join_tokens(tokens, splits)


def _make_token(result: re.Match[str], text: str, *, glued: bool, ordinal_dot: bool) -> Token:
    kind = str(result.lastgroup)
    typed = result.group(kind)
    plain = typed.lower().replace("’", "'")  # noqa: RUF001 -- see above
    start, end = result.start(), result.end()
    if kind == "half":
        return Token(WORD, plain[0] + "m", start, end, (), glued)
    if kind == WORD:
        return Token(WORD, plain.removesuffix("'") if plain != "'" else plain, start, end, (), glued)
    if kind == PATH:
        return Token(PATH, typed, start, end, (), glued)
    if kind == MARK:
        return Token(MARK, plain, start, end, (), glued)
    value = tuple(int(number) for number in re.findall(r"\d+", plain) if len(number) < 10)
    if not value:
        return Token(WORD, plain, start, end, (), glued)
    if kind == NUMBER and ordinal_dot and re.match(r"\.(?=\s*[^\s\d])", text[end:]):
        return Token(ORDINAL, plain, start, end + 1, value, glued)
    return Token(kind, plain, start, end, value, glued)


def _join_tokens(tokens: list[Token], splits: Callable[[str], bool]) -> list[Token]:
    """Join letters and digits that belong together: ``A4`` is one token, ``Feb13`` is two."""
    joined: list[Token] = []
    for token in tokens:
        before = joined[-1] if joined else None
        letters_then_digits = (
            before is not None and token.glued and before.kind == WORD and token.kind in {NUMBER, CLOCK, ORDINAL, PAIR}
        )
        if letters_then_digits and before is not None and not splits(before.text):
            joined[-1] = Token(WORD, before.text + token.text, before.start, token.end, (), before.glued)
        else:
            joined.append(token)
    return joined
