"""The ways of delivery that a text names: "by e-mail", "als Push". Their words are rows of the lexicon."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.delivery_channels import USERS_CHANNELS, DeliveryChannel
from cloudsched.language.english import ENGLISH
from cloudsched.language.languages import LANGUAGES, guess_language
from cloudsched.language.lexicon import Cursor, classify, tokenise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.language.lexicon import Language, Matches, Token
    from cloudsched.language.nodes import Span

CHANNELS: Final = dict(enumerate(USERS_CHANNELS, start=1))
"""The channels, by the values of the class "channel" of `Language.requests`."""
QUOTED: Final = r"""(?:"[^"]*"|“[^”]*”|„[^“]*“|(?<!\w)'[^']*'(?!\w))"""
"""Words in quotes, in which nothing but themselves is read."""


def say_channel(channel: DeliveryChannel) -> str:
    """Return words that name a way of delivery in a text."""
    value = USERS_CHANNELS.index(channel) + 1
    return f"by {ENGLISH.with_requests.list_words('channel')[value].partition('|')[0]}"


def take_delivery(text: str) -> tuple[tuple[DeliveryChannel, ...], str]:
    """Return the ways of delivery that a text names, such as "by e-mail", and the text without them."""
    found = _find(text)
    values = {value for _, named in found for value in named}
    for c in read_requests(text):
        c.skip("padding")
        if (sends := c.take("send-by")) is not None:
            values.add(sends.value)
    for (begin, end), _ in reversed(found):
        text = f"{text[:begin]} {text[end:]}"
    channels = tuple(channel for value, channel in CHANNELS.items() if value in values)
    return channels, " ".join(text.split())


def find_deliveries(text: str) -> list[Span]:
    """Return the places where a text names ways of delivery."""
    return [place for place, _ in _find(text)]


def list_languages(text: str) -> list[Language]:
    """Return the languages that are read, that of a text first."""
    every = list(LANGUAGES.values())
    guessed = guess_language(tokenise(text, every[0]), every)
    return sorted(every, key=lambda each: each is not guessed)


def read_requests(text: str) -> Iterator[Cursor]:
    """Yield a cursor at the beginning of a text for each language, with its words of requests."""
    for code, language in LANGUAGES.items():
        yield Cursor(*_classify(text, code), language.with_requests)


@lru_cache(maxsize=16)  # a text is read for its deliveries, fields and wishes, one after the other
def _classify(text: str, code: str) -> tuple[Sequence[Token], Sequence[Matches]]:
    language = LANGUAGES[code].with_requests
    tokens = tokenise(text, language)
    return tokens, classify(tokens, language)


def _find(text: str) -> list[tuple[Span, set[int]]]:
    """Return the places of ways of delivery, with their values, in the language that finds any."""
    unquoted = re.sub(QUOTED, lambda quoted: "x" * len(quoted[0]), text)
    for c in read_requests(unquoted):
        found: list[tuple[Span, set[int]]] = []
        while not c.ended:
            first = c.at
            values = _parse_channels(c)
            if values is None:
                c.at = first + 1
            else:
                found.append((c.span(first), values))
        if found:
            return found
    return []


def _parse_channels(c: Cursor) -> set[int] | None:
    """Parse "by e-mail and push", "to my inbox", ", per Mail"."""
    values = set[int]()
    while True:
        begin = c.at
        has_comma = c.skip("comma")
        may_follow = bool(values) and (c.skip("and") or has_comma)
        is_via = c.take("via") is not None
        c.skip("article", "own")
        channel = c.take("channel") if is_via or may_follow else None
        after = c.token
        is_cut = after is not None and after.glued and after.text not in {",", ".", ";", "!", "?"}
        if channel is None or is_cut:  # "by mail-order"
            c.at = begin
            return values or None
        values.add(channel.value)
