"""What the words of a text say besides the schedule: ways of delivery, the kind of work, and which task is meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery import USERS_CHANNELS, DeliveryChannel
from cloudsched.language.changes import Order, find_open_time, find_order
from cloudsched.language.english import ENGLISH
from cloudsched.language.languages import LANGUAGES
from cloudsched.language.lexicon import Cursor, classify, is_plain, tokenise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NAMES: Final = {each: each.traits.words for each in USERS_CHANNELS if each.traits.words is not None}
_NAME: Final = "|".join(_NAMES.values())
_BY: Final = r"(?:by|via|per|through|using|as|to|on|in|into|with)\s+(?:an?\s+|my\s+|the\s+)?"
_DELIVERY: Final = re.compile(
    rf"(?:\s*,)?\s+{_BY}(?:{_NAME})(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?:{_BY}|my\s+)?(?:{_NAME}))*(?=[\s.,;!?]|$)",
    re.IGNORECASE,
)
_SEND: Final = re.compile(r"^(?:please\s+)?(?P<how>e-?mail|mail|push)\s+me\b", re.IGNORECASE)

_CATEGORIES: Final = (
    (Category.REMINDER, r"remind(?:er|ers|s|ed)?|erinner\w*|don'?t let me forget|don'?t forget"),
    (Category.ANALYSIS, r"analy[sz]e|analysis|analyses|compare|evaluate|investigate|review"),
    (Category.REPORT, r"reports?|summar(?:y|ies|i[sz]e)|digest|newsletter|overview|briefing"),
)
_STOPWORDS: Final = frozenset(
    {
        "a",
        "an",
        "and",
        "at",
        "by",
        "every",
        "for",
        "from",
        "in",
        "into",
        "it",
        "its",
        "me",
        "my",
        "of",
        "on",
        "one",
        "or",
        "our",
        "please",
        "so",
        "task",
        "tasks",
        "that",
        "the",
        "them",
        "this",
        "those",
        "to",
        "up",
        "with",
        "sends",
        "send",
        "makes",
        "make",
        "your",
        "job",
    }
)
_REMIND: Final = re.compile(r"^(?:please\s+)?remind\s+me\b", re.IGNORECASE)
_ABOUT: Final = re.compile(r"(?:^|\s)(?:to|about|of|that)\s+", re.IGNORECASE)
"""What stands before what a reminder is about."""


class Delivery(NamedTuple):
    """The ways of delivery in a text, and the text without them."""

    channels: tuple[DeliveryChannel, ...]
    rest: str


def take_delivery(text: str) -> Delivery:
    """Return the ways of delivery that a text names, such as "by e-mail"."""
    said = [match[0] for match in _DELIVERY.finditer(text)]
    if (sends := _SEND.match(text)) is not None:
        said.append(sends["how"])
    found = tuple(
        channel
        for channel, name in _NAMES.items()
        if any(re.search(rf"\b(?:{name})\b", part, re.IGNORECASE) for part in said)
    )
    return Delivery(found, " ".join(_DELIVERY.sub(" ", text).split()))


def find_category(text: str) -> Category:
    """Return which kind of work a text is about; the first of reminder, analysis and report whose words it has."""
    for category, words in _CATEGORIES:
        if re.search(rf"\b(?:{words})\b", text, re.IGNORECASE):
            return category
    return Category.OTHERS


def is_reminder(text: str) -> bool:
    """Return whether a text says at once that it asks for a reminder, even if it does not say when."""
    return _REMIND.match(text) is not None


_AGAIN: Final = re.compile(
    r"^(?:please\s+|and\s+)*(?:do\s+)?(?:(?:the\s+)?same(?:\s+thing)?(?:\s+(?:again|as\s+(?:last\s+time|before|the\s+last\s+one)))?"
    r"|(?:once\s+)?again|like\s+(?:last\s+time|before))\s*(?:,|\bbut\b|\bonly\b|\s|$)[\s,]*(?:but\s+)?(?P<change>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_LIKE: Final = re.compile(
    r"^(?:please\s+)?(?:(?:the\s+)?same\s+as|like)\s+(?:the|my|our)\s+(?P<what>.+?)\s*,?\s+but\s+(?P<change>.+)$",
    re.IGNORECASE | re.DOTALL,
)


class Again(NamedTuple):
    """A wish for a task like an earlier one: which one, empty for the last, and what is different."""

    what: str
    change: str


def find_again(text: str) -> Again | None:
    """Return what "same as last time but on Mondays" and "like the report, but monthly" say; None for other texts."""
    again, like = _AGAIN.match(text), _LIKE.match(text)
    if like is not None:
        return Again(like["what"], like["change"])
    return None if again is None else Again("", re.sub(r"[\s,]*please[.!]*$", "", again["change"], flags=re.IGNORECASE))


def find_any_order(text: str) -> Order | None:
    """Return what words ask for, in whichever language, that is done to a task there is: "Lösche meine Erinnerung".

    In English, changes of a task are read before: what is left that changes the user's own is other work of theirs.
    """
    orders = list[Order]()
    for c in _read_in_each(text):
        if (order := find_order(text, c)) is not None:
            is_work = c.language is ENGLISH and order.verb == "change"
            orders.append(order._replace(is_own=order.is_own and not is_work))
    return max(orders, key=lambda order: (order.is_task, order.is_timing), default=None)


def _read_in_each(text: str) -> Iterator[Cursor]:
    for language in LANGUAGES.values():
        tokens = tokenise(text, language)
        yield Cursor(tokens, classify(tokens, language), language)


def refers_to_past(text: str) -> bool:
    """Return whether a text refers to a task that there is."""
    return find_again(text) is not None or re.search(r"\b(?:same|again|last time)\b", text, re.IGNORECASE) is not None


_TIMES: Final = frozenset(
    {
        *("number", "ordinal", "unit", "each", "adverb", "bi", "twice", "vague", "now", "until"),
        *("weekday", "weekdays", "dayset", "month", "relday", "tonight", "feast", "holiday"),
        *("part", "named-time", "halfday", "half-known", "shift"),
    }
)
"""The kinds of words that may say when, or how often."""


def may_name_time(text: str) -> bool:
    """Return whether a word of a text may say when or how often, understood or not."""
    tokens = tokenise(text, ENGLISH)
    is_open = find_open_time(tokens, classify(tokens, ENGLISH)) is not None
    return (
        is_open
        or any(character.isdigit() for character in text)
        or any(_TIMES & matches.keys() for c in _read_in_each(text) for matches in c.matches)
    )


def asks_reminder(text: str) -> bool:
    """Return whether a text begins with "remind me" in one of the languages, so that what follows is what to do."""
    for c in _read_in_each(text):
        c.skip("polite", "intro", "wish", "comma")
        if c.sees("remind"):
            return True
    return False


class Wanted(NamedTuple):
    """What a reminder is about, and the words before it, which say when, if there are any: "after lunch"."""

    title: str
    when: str


def split_request(text: str) -> Wanted:
    """Split "remind me after lunch to call Anna": what stands before "to" says when, also if nobody knows when."""
    rest = _REMIND.sub("", text).strip()
    found = _ABOUT.search(rest)
    if found is None or not rest[found.end() :].strip():
        tokens = tokenise(rest, ENGLISH)
        is_when = all(matches and not is_plain(matches) for matches in classify(tokens, ENGLISH))
        return Wanted("", rest) if is_when else Wanted(rest, "")  # "remind me later"
    tokens = tokenise(rest[: found.start()], ENGLISH)
    says = any(not matches.keys() & {"polite", "also", "comma"} for matches in classify(tokens, ENGLISH))
    return Wanted(rest[found.end() :].strip(), rest[: found.start()].strip() if says else "")


def content_words(text: str) -> set[str]:
    """Return the words of a text that say something, in lower case and without a plural's s."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return {word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words if word not in _STOPWORDS}  # noqa: PLR2004


def count_shared(wanted: Iterable[str], words: set[str]) -> int:
    """Return how many of the words stand among others, or begin like one of them: remind and reminder."""
    return sum(1 for word in wanted if word in words or any(_are_related(word, each) for each in words))


def _are_related(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) > 4 and long.startswith(short)  # noqa: PLR2004 - shorter beginnings are shared by chance
