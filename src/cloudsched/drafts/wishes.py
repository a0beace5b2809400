"""Find the changes of a task's fields and delivery in a text: "rename it to Numbers", "setze dose auf 5 mg"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from cloudsched.drafts.deliveries import read_requests, take_delivery
from cloudsched.drafts.requests import Intent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.domain.documents.delivery_channels import DeliveryChannel
    from cloudsched.drafts.situation import Lead
    from cloudsched.language.lexicon import Cursor

_MOST_FIELD_WORDS: Final = 4
_MOST_BECOMES: Final = 6
"""The number of words such as "to" at which the name of a task may end."""
_MOST_JOINED: Final = 10
"""The number of wishes that a text may join."""


class Wish(NamedTuple):
    """A change that a text may ask for."""

    what: str
    """The task, in the user's words."""
    said: str = ""
    """The whole text, which has the fields of a payload."""
    end: int = 0
    """The number of its characters whose meaning is in the words."""
    words: str = ""
    """The words that change the schedule."""
    lead: Lead = ()
    """What is said before them."""
    language: str | None = None
    field: str = ""
    """The field that changes, as the user calls it."""
    value: str = ""
    """The new value of that field."""
    channels: tuple[DeliveryChannel, ...] = ()
    delivery: Literal["set", "add", "drop"] = "set"
    """The change with these channels."""


def find_wishes(text: str) -> Iterator[Wish]:
    """Yield the changes of fields and of the delivery that a text may ask for, the most specific one first."""
    for c in read_requests(text):
        yield from _FieldWishes(text, c).find()
    delivery = take_delivery(text)
    for c in read_requests(delivery.rest):
        yield from _find_deliveries(delivery.rest, c, delivery.channels)


def split_wishes(text: str) -> tuple[str, str] | None:
    """Split "move it to Tuesday and rename it to Numbers" before its last wish. None if there is one alone."""
    splits = list[tuple[int, int]]()
    for c in read_requests(text):
        for at in range(1, len(c.tokens)):
            c.at = at
            gap = text[c.tokens[at - 1].end : c.tokens[at].start]
            is_joined = c.skip("comma", "and", "then") or "\n" in gap
            begin = c.at
            c.skip("padding", "mark")
            has_verb = c.take("verb", "send", "edit-first") is not None
            if is_joined and has_verb and (c.sees("pronoun", "its") or "\n" in gap):
                splits.append((c.tokens[at - 1].end, c.tokens[begin].start))
    if not 0 < len(splits) <= _MOST_JOINED:
        return None
    end, begin = max(splits)
    return text[:end], text[begin:]


class _FieldWishes:
    """The places in a text of a verb that sets a field, and of the new value."""

    def __init__(self, text: str, c: Cursor) -> None:
        self._text = text
        self._c = c
        c.skip("padding")
        begin = c.at
        end = len(c.tokens)

        verb = c.take("verb", "edit-first")
        first = c.at
        if verb is None or verb.value == Intent.MOVE:  # "den Titel von X auf Y ändern"
            first = begin
            verbs = {at: c.matches[at]["verb"] for at in range(begin + 1, end) if "verb" in c.matches[at]}
            end, verb = next(((at, each) for at, each in verbs.items() if each.end == end), (end, None))
        elif (last := c.matches[end - 1].get("edit-last")) is not None and last.value == verb.value:
            end -= 1  # "benenne X in Y um"

        self.renames = verb is not None and verb.value == Intent.RENAME
        sets = verb is not None and (self.renames or verb.value == Intent.CHANGE)
        self._left, self._end = first, end
        self._becomes = [
            (at, c.matches[at]["becomes"].end)
            for at in range(first + 1, end)
            if sets and "becomes" in c.matches[at] and c.matches[at]["becomes"].end < end
        ][:_MOST_BECOMES]

    def find(self) -> Iterator[Wish]:
        """Yield the wishes for a task that is named, and last for one that is not: "set the city to Oslo".

        In "set the city of my reminder to call mum to Oslo", the longest name of a task counts.
        """
        for at, end in reversed(self._becomes):
            for field, what in self._name(at):
                yield Wish(what, field=field, value=self._value(end))

    def _name(self, end: int) -> Iterator[tuple[str, str]]:
        """Yield the field and the task that the words up to a token may name."""
        c, first = self._c, self._skip(self._left)
        if self.renames:
            yield "title", self._name_task(self._left, end)
            return
        for at in range(first + 1, min(first + _MOST_FIELD_WORDS + 1, end)):
            link = c.matches[at].get("link")
            if link is not None and link.end < end:
                yield self._slice(first, at), self._name_task(link.end, end)
            elif {"own", "article"} & c.matches[at].keys():  # "die Stadt meiner Erinnerung"
                yield self._slice(first, at), self._name_task(at, end)
        for at in range(first, end - 1):
            if c.tokens[at].text.endswith("'s"):
                yield self._slice(at + 1, end), self._slice(first, at + 1)[:-2]
        yield self._slice(first, end), "it"

    def _skip(self, at: int) -> int:
        """Return the first token that is no article."""
        while at < self._end and {"own", "article", "its"} & self._c.matches[at].keys():
            at += 1
        return at

    def _name_task(self, begin: int, end: int) -> str:
        """Return the words for a task, without articles. Any pronoun is "it"."""
        begin = self._skip(begin)
        match = self._c.matches[begin].get("pronoun") if begin < end else None
        return "it" if match is not None and match.end == end else self._slice(begin, end)

    def _slice(self, begin: int, end: int) -> str:
        tokens = self._c.tokens
        return self._text[tokens[begin].start : tokens[end - 1].end] if begin < end else ""

    def _value(self, begin: int) -> str:
        """Return a value without its quotes, or the full stop at its end."""
        tokens = self._c.tokens
        last = len(self._text) if self._end == len(tokens) else tokens[self._end].start
        text = " ".join(self._text[tokens[begin].start : last].split())
        if len(text) > 1 and text[0] in "\"“„'" and text[-1] in "\"”“'":
            return text[1:-1]
        return text.removesuffix(".") if not text.endswith("..") else text


def _find_deliveries(text: str, c: Cursor, channels: tuple[DeliveryChannel, ...]) -> Iterator[Wish]:
    """Yield the wish in "send my report" or "stop e-mailing me my report". The channels are left out of the text."""
    used = set[int]()
    delivery: Literal["set", "add", "drop"] = "set"
    sends = False

    for at, kinds in enumerate(c.matches):
        mark, send = kinds.get("mark"), kinds.get("send")
        if send is not None and not sends and (at == len(used) or send.end == len(c.tokens)):
            sends = True
            used |= set(range(at, send.end))
        if mark is not None and mark.value in {Intent.ADD, Intent.DROP}:
            delivery = "add" if mark.value == Intent.ADD else "drop"
            used |= set(range(at, mark.end))
        elif found := kinds.keys() & {"padding", "lasting", "me"}:
            used |= set(range(at, max(kinds[kind].end for kind in found)))

    if not channels or not sends:
        return

    used |= {at for at, kinds in enumerate(c.matches) if {"own", "article"} & kinds.keys()}
    named = [at for at in range(len(c.tokens)) if at not in used]
    what = " ".join(text[c.tokens[at].start : c.tokens[at].end] for at in named)
    if len(named) == 1 and "pronoun" in c.matches[named[0]]:
        what = "it"
    yield Wish(what, channels=channels, delivery=delivery)
