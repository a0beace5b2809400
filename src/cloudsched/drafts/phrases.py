"""What the words of a text say besides the schedule: ways of delivery, the kind of work, and which task is meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.channel import USERS_CHANNELS, DeliveryChannel
from cloudsched.language.languages import LANGUAGES
from cloudsched.language.lexicon import classify, tokenise

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    r"|(?:once\s+)?again|like\s+(?:last\s+time|before))\s*(?:,|\bbut\b|\bonly\b|$)[\s,]*(?:but\s+)?(?P<change>.*)$",
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


def begins_with_change(title: str) -> bool:
    """Return whether words ask in another language than English to change something: "Décale mon rapport"."""
    for language in LANGUAGES.values():
        tokens = tokenise(title, language)[:1]
        if language.code != "en" and any(
            {"postpone", "make"} & matches.keys() for matches in classify(tokens, language)
        ):
            return True
    return False


def refers_to_past(text: str) -> bool:
    """Return whether a text refers to a task that there is."""
    return find_again(text) is not None or re.search(r"\b(?:same|again|last time)\b", text, re.IGNORECASE) is not None


_TIMES: Final = frozenset(
    {
        *("number", "ordinal", "unit", "each", "adverb", "bi", "twice", "vague", "now", "until"),
        *("weekday", "weekdays", "dayset", "month", "relday", "tonight", "feast", "holiday"),
        *("part", "named-time", "halfday"),
    }
)
"""The kinds of words that may say when, or how often."""


def may_name_time(text: str) -> bool:
    """Return whether a word of a text may say when or how often, understood or not."""
    return any(character.isdigit() for character in text) or any(
        _TIMES & matches.keys()
        for language in LANGUAGES.values()
        for matches in classify(tokenise(text, language), language)
    )


def strip_request(text: str) -> str:
    """Return what a reminder is about."""
    return re.sub(r"^(?:to|about|of|that)\s+", "", _REMIND.sub("", text).strip(), flags=re.IGNORECASE)


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
