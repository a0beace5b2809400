"""What a text may ask to change, and of which task, in the words of the user: "move my report to Monday"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from cloudsched.drafts.phrases import take_delivery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.domain.documents.channel import DeliveryChannel

_ANY_CASE: Final = re.IGNORECASE | re.DOTALL
_POLITE: Final = r"(?:(?:please|can you|could you|would you)\s+)*"
_EDIT: Final = r"(?:change|set|update|edit|correct|replace|make|switch)"
_FIELD: Final = r"(?P<field>[^\W\d][\w-]*(?:\s+[\w-]+){0,3}?)"
_ANYMORE: Final = r"(?:\s+(?:any\s?more|any longer))?"
_FROM_NOW: Final = r"(?:\s*,?\s+(?:from now on|in future|in the future|instead|please))*"


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"^{_POLITE}{pattern}$", _ANY_CASE)


_SET: Final = _compile(r"(?P<verb>move|change|reschedule|shift|set|switch|make|put|update)\s+(?P<rest>.+)")
_DELAY: Final = _compile(r"(?P<verb>postpone|delay|push\s+back|push)\s+(?P<rest>.+)")
_SKIP_NEXT: Final = _compile(r"skip\s+(?:my|the)?\s*next\s+(?P<what>.+)")
_RENAME: Final = _compile(r"rename\s+(?P<rest>.+)")
_DESCRIBE: Final = _compile(r"describe\s+(?P<rest>.+)")
_FIELD_OF: Final = _compile(rf"{_EDIT}\s+(?:the\s+|my\s+)?{_FIELD}\s+(?:of|for)\s+(?P<rest>.+)")
_OWN_FIELD: Final = _compile(rf"{_EDIT}\s+(?P<what>.+?)['\u2019]s?\s+{_FIELD}\s+(?:to|as|into)\s+(?P<value>.+)")
_ITS_FIELD: Final = _compile(rf"{_EDIT}\s+(?:the\s+|its\s+)?{_FIELD}\s+(?:to|as|into)\s+(?P<value>.+)")
_BECOMES: Final = re.compile(r"\s+(?:to|as|into)\s+", re.IGNORECASE)
_LISTED: Final = _compile(rf"{_EDIT}\s+(?P<what>[^:,;]+?)\s*[:,;]\s*(?P<phrase>.+)")
_SEND: Final = _compile(
    r"(?P<more>also\s+)?(?:send|deliver|e-?mail|mail|push)\s+(?:me\s+)?(?P<what>.+?)(?:\s+to\s+me)?"
    rf"(?P<too>\s+(?:too|as well|also|in addition))?{_FROM_NOW}"
)
_STOP_SENDING: Final = _compile(
    r"(?:(?:stop|no longer|don'?t|do not)\s+)(?:send(?:ing)?|deliver(?:ing)?|(?:e-?)?mail(?:ing)?|push(?:ing)?)\s+"
    rf"(?:me\s+)?(?P<what>.+?)(?:\s+to\s+me)?{_ANYMORE}"
)
_STOP_BY: Final = re.compile(r"\b(?P<how>e-?mail|mail|push)(?:ing)?\b", re.IGNORECASE)
_TO_WAY: Final = _compile(r"(?:move|change|switch|set|put|make)\s+(?P<what>.+)")
_OTHER: Final = _compile(r"(?P<verb>cancel|stop|delete|remove|pause|resume|unpause|trigger|run|retry)\s+(?P<what>.+)")
_OPERATIONS: Final = {"stop": "cancel", "remove": "delete", "unpause": "resume", "run": "trigger"}
_AND: Final = re.compile(
    r"\s*,?\s+(?:and|then|and then)\s+(?=(?:please\s+)?(?:also\s+)?"
    r"(?:move|change|reschedule|set|switch|make|put|update|postpone|delay|rename|describe|send|deliver)\s+its?\b)",
    re.IGNORECASE,
)


class Wish(NamedTuple):
    """A change that a text may ask for."""

    what: str
    """The task, in the user's words."""
    phrase: str = ""
    """The change of its schedule, in words of the grammar; fields of the payload may stand in it."""
    field: str = ""
    """The field that changes, as the user calls it."""
    value: str = ""
    """What that field becomes."""
    channels: tuple[DeliveryChannel, ...] = ()
    delivery: Literal["set", "add", "drop"] = "set"
    """What becomes of these channels."""
    is_exact: bool = False
    """Whether `what` has to be a task's own words alone."""
    operation: str = ""
    """What else is asked for, such as ``cancel``: no draft does that."""


def find_wishes(text: str) -> Iterator[Wish]:
    """Yield what a text may ask to change; what says most comes first."""
    yield from _iter_fields(text)
    delivery = take_delivery(text)
    yield from _iter_deliveries(delivery.rest, delivery.channels)
    if (skip := _SKIP_NEXT.match(text)) is not None:
        yield Wish(skip["what"], "skip the next one")
    if (other := _OTHER.match(text)) is not None:
        verb = other["verb"].lower()
        yield Wish(other["what"], operation=_OPERATIONS.get(verb, verb))
    for wish in _iter_schedules(delivery.rest):
        yield wish._replace(channels=delivery.channels)
    if (listed := _LISTED.match(delivery.rest)) is not None:
        yield Wish(listed["what"], listed["phrase"], channels=delivery.channels)
    if delivery.channels and (to_way := _TO_WAY.match(delivery.rest)) is not None:
        yield Wish(to_way["what"], channels=delivery.channels, is_exact=True)
    if (own := _ITS_FIELD.match(text)) is not None:
        yield Wish("it", field=own["field"], value=_strip(own["value"]))


def split_wishes(text: str) -> tuple[str, str] | None:
    """Return the two halves of "move my report to Tuesday and rename it to Numbers", the last wish as the second."""
    found = list(_AND.finditer(text))
    return (text[: found[-1].start()], text[found[-1].end() :]) if found else None


def _iter_fields(text: str) -> Iterator[Wish]:
    """Yield what "rename my report to Numbers" and "set the city of my report to Oslo" say.

    In "set the city of my reminder to call mum to Oslo" it is the longest name of a task that counts.
    """
    for pattern, named in ((_RENAME, "title"), (_DESCRIBE, "description"), (_FIELD_OF, "")):
        if (found := pattern.match(text)) is None:
            continue
        rest, field = found["rest"], named or found["field"]
        splits = [(rest[: each.start()], _strip(rest[each.end() :])) for each in _BECOMES.finditer(rest)]
        yield from (Wish(what, field=field, value=value, is_exact=True) for what, value in reversed(splits))
        yield from (Wish(what, field=field, value=value) for what, value in splits[:1])
    if (own := _OWN_FIELD.match(text)) is not None:
        yield Wish(own["what"], field=own["field"], value=_strip(own["value"]))


def _iter_deliveries(text: str, channels: tuple[DeliveryChannel, ...]) -> Iterator[Wish]:
    """Yield what "send my report by e-mail" and "stop e-mailing me my report" say, without the words for the ways."""
    if (stop := _STOP_SENDING.match(text)) is not None:
        how = _STOP_BY.search(text)
        stopped = channels or (() if how is None else take_delivery(f"it by {how['how']}").channels)
        if stopped:
            yield Wish(stop["what"], channels=stopped, delivery="drop", is_exact=True)
    elif channels and (send := _SEND.match(text)) is not None:
        adds = send["more"] or send["too"]
        yield Wish(send["what"], channels=channels, delivery="add" if adds else "set", is_exact=True)


def _iter_schedules(text: str) -> Iterator[Wish]:
    for pattern, template in ((_SET, "move it {}"), (_DELAY, "postpone it {}")):
        found = pattern.match(text)
        words = [] if found is None else found["rest"].split()
        for at in range(1, len(words)):
            what, rest = " ".join(words[:at]), " ".join(words[at:])
            if pattern is _SET and re.match(r"(?:to|from|until|till)\b", rest, re.IGNORECASE) is None:
                yield from _iter_made(found, what, rest)
            else:
                yield Wish(what, template.format(rest))


def _iter_made(found: re.Match[str] | None, what: str, rest: str) -> Iterator[Wish]:
    """Yield what "make my report Monday" and "move my report an hour later" say."""
    if re.search(r"\b(?:later|earlier)\s*$", rest, re.IGNORECASE):
        yield Wish(what, re.sub(r"^by\s+", "", rest, flags=re.IGNORECASE))
    elif found is not None and found["verb"].lower() == "make":
        yield Wish(what, f"make it {rest}")


def _strip(value: str) -> str:
    """Return a value without its quotes, or the full stop at its end."""
    text = value.strip()
    if len(text) > 1 and text[0] in "\"“„'" and text[-1] in "\"”“'":
        return text[1:-1]
    return text.removesuffix(".") if not text.endswith("..") else text
