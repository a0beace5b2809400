"""The parts of a text besides the schedule: the kind of work, the meant task, and the payload.

The names of a payload's fields in the text fill it, and the handler's model checks it.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.category import Category
from cloudsched.domain.responses.api_responses import MissingField
from cloudsched.drafts.deliveries import QUOTED, find_deliveries, read_requests
from cloudsched.drafts.value_ends import OpenValue, find_ends, has_schedule, name_answer
from cloudsched.engine.handlers.payload_fields import list_fields
from cloudsched.errors import InvalidInput
from cloudsched.language.changes import Order, find_order
from cloudsched.language.languages import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.drafts.request import Proposal
    from cloudsched.engine.handlers.registry import Handler
    from cloudsched.language.nodes import Span

_CATEGORIES: Final = (
    (Category.REMINDER, r"remind(?:er|ers|s|ed)?|erinner\w*|don'?t let me forget|don'?t forget"),
    (Category.ANALYSIS, r"analy[sz]e|analysis|analyses|compare|evaluate|investigate|review"),
    (Category.REPORT, r"reports?|summar(?:y|ies|i[sz]e)|digest|newsletter|overview|briefing"),
)
_STOPWORDS: Final = frozenset(
    """
    a an and at by every for from in into it its me my of on one or our please so task tasks that the them this
    those to up with sends send makes make your job
    """.split()  # noqa: SIM905 -- easier to read
)
REMIND: Final = re.compile(
    r"(?:please\s+)?remind\s+me\b\s*(?P<when>.*?)\s*(?:\b(?:to|about|of|that)\s+(?P<title>.+))?", re.IGNORECASE
)
"""A reminder: the words of time, even if they are not understood, and the subject. "Remind me after lunch to eat"."""


def find_category(text: str) -> Category:
    """Return the kind of work in a text: the first of reminder, analysis and report whose words it has."""
    for category, words in _CATEGORIES:
        if re.search(rf"\b(?:{words})\b", text, re.IGNORECASE):
            return category
    return Category.OTHERS


def find_any_order(text: str) -> Order | None:
    """Return the order to do something to an existing task, in any language that is read: "Lösche meine Erinnerung"."""
    orders = [order for c in read_requests(text) if (order := find_order(text, c)) is not None]
    return max(orders, key=lambda order: (order.is_task, order.is_timing), default=None)


def asks_reminder(text: str) -> bool:
    """Return whether a text begins with "remind me" in one of the languages, so that the subject follows."""
    for c in read_requests(text):
        c.skip("polite", "intro", "wish", "comma")
        if c.sees("remind"):
            return True
    return False


def content_words(text: str) -> set[str]:
    """Return the meaningful words of a text, in lower case and without a plural's s."""
    return {to_singular(word) for word in re.findall(r"[^\W_]+", text.casefold()) if word not in _STOPWORDS}


def to_singular(word: str) -> str:
    """Return a word without a plural's s."""
    return word[:-1] if len(word) > 3 and word.endswith("s") else word  # noqa: PLR2004 - "bus"


def count_shared(wanted: Iterable[str], words: set[str]) -> int:
    """Return the number of words that are among others, or begin like one of them: remind and reminder."""
    return sum(any(_begin_alike(word, each) for each in words) for word in wanted)


def _begin_alike(one: str, other: str) -> bool:
    size = min(len(one), len(other))
    return one == other or (size > 4 and one[:size] == other[:size])  # noqa: PLR2004 - fewer are alike by chance


def join_words(kind: str, value: int = 1) -> str:
    """Return a pattern of the words of a class, in all languages."""
    rows = [each.with_requests.list_words(kind) for each in LANGUAGES.values()]
    return "|".join(each[value] for each in rows if each)


_LEAD: Final = (
    r"(?:\s*[,;])?\s*"
    rf"(?:\b(?:{join_words('label-lead')})\s+)?(?:\b(?:{join_words('label-lead', 2)})\s+)?"
)
_TEXT_FIELDS: Final = (
    *("text", "message", "what", "topic", "subject", "task", "title", "question", "query", "prompt", "body"),
)
"""The names of fields that have the subject of a task, in the order of preference."""


def take_fields(
    handler: Handler | None, text: str, context: Mapping[str, Any]
) -> tuple[dict[str, Any], str, list[OpenValue]]:
    """Return the fields of a handler's payload that a text gives by name, and the text without them.

    The values whose end is uncertain come last. The context may say where it is.

    ``city: Paris``, ``city = "New York"`` and ``city is Paris`` give the field ``city``. A value without quotes goes
    to the next field, a semicolon, a way of delivery or a schedule.
    """
    said: dict[str, Any] = {}
    open_values = list[OpenValue]()
    labels = _find_labels(handler, text)
    starts = [*(start for start, _ in labels.values()), len(text)]
    rest = text[: starts[0]]
    is_timed = bool(labels) and has_schedule(rest.rstrip(" ,;"))
    for (name, (_, begin)), end in zip(labels.items(), starts[1:], strict=True):
        part = text[begin:end]
        if quoted := re.match(QUOTED, part):
            said[name] = quoted[0][1:-1]
            rest += f" {part[quoted.end() :]}"
            continue
        deliveries = [start for start, _ in find_deliveries(part)]
        values = [part[:each] for each in find_ends(part, deliveries, is_timed=is_timed)]
        if (answer := context.get(name_answer(name))) in values:
            values = [answer]
        said[name] = values[0]
        rest += f" {part[len(values[0]) :]}"
        if len(values) > 1:
            open_values.append(OpenValue(name, tuple(values)))
    return said, " ".join(rest.split()), open_values


def _find_labels(handler: Handler | None, text: str) -> dict[str, Span]:
    """Return the place of each field's first label in a text, such as "city: ". Words in quotes are none."""
    names = [r"[\s_-]?".join(map(re.escape, _split(name))) for name in list_payload_fields(handler)]
    label = rf"{_LEAD}\b(?P<label>{'|'.join(names)})\s*(?:[:=]|\b(?:{join_words('label-is')})\b)\s*(?=[^\s,;])"
    first: dict[str, Span] = {}
    for found in re.finditer(rf"{QUOTED}|{label}", text, re.IGNORECASE) if names else ():
        if (name := find_field(handler, found["label"] or "")) is not None:
            first.setdefault(name, found.span())
    return first


def split_fields(handlers: Iterable[Handler], text: str) -> tuple[str, str]:
    """Split a text before its first field of a payload, in which any words may stand."""
    starts = [start for handler in handlers for start, _ in _find_labels(handler, text).values()]
    at = min(starts, default=len(text))
    return text[:at], text[at:]


def list_payload_fields(handler: Handler | None) -> dict[str, bool]:
    """Return the fields of a handler's payload, and whether each is required. Empty if it takes any."""
    return {} if handler is None or handler.payload is None else list_fields(handler.payload.core_schema)


def find_field(handler: Handler | None, called: str) -> str | None:
    """Return the field of the payload by the name that people use: ``dueDate`` for "due date"."""
    wanted = "".join(_split(called)).casefold()
    return next((name for name in list_payload_fields(handler) if "".join(_split(name)).casefold() == wanted), None)


def complete_payload(draft: Proposal, title: str | None, context: Mapping[str, Any]) -> Proposal:
    """Return a new task with its payload as the handler's model accepts it, with the task's subject.

    What the text does not give, the context may.
    """
    if draft.handler is None:
        return draft
    fields = list_payload_fields(draft.handler)
    said = {**{name: context[name] for name in fields if name in context}, **draft.payload}
    notes = draft.assumptions
    payload = said
    subject = next((name for name in _TEXT_FIELDS if fields.get(name) and name not in said), None)
    if title and subject is not None:
        payload = {**said, subject: title}
        notes = (*notes, f"{subject!r} is {title!r}.")
    payload, missing = check_fields(draft.handler, payload, said)
    return replace(draft, payload=payload, assumptions=notes, missing=(*draft.missing, *missing))


def check_fields(
    handler: Handler, payload: Mapping[str, Any], said: Iterable[str]
) -> tuple[dict[str, Any], tuple[MissingField, ...]]:
    """Return a payload as the handler's model accepts it, and what is wrong with it.

    A text that was said for a field may stand for a number, or for several texts with commas between them.
    """
    result = dict(payload)
    for name in said if handler.payload is not None else ():
        value = result[name]
        if isinstance(value, str):
            listed = [part.strip() for part in value.split(",") if part.strip()]
            for each in (_parse_json(value), value, listed):
                tried = {**result, name: each}
                if f"payload.{name}" not in [problem.field for problem in _find_problems(handler, tried)]:
                    result = tried
                    break
    return result, _find_problems(handler, result)


def _find_problems(handler: Handler, payload: dict[str, Any]) -> tuple[MissingField, ...]:
    try:
        handler.check_payload(payload)
    except InvalidInput as error:
        return (to_missing(error),)
    return ()


def to_missing(error: InvalidInput) -> MissingField:
    """Return the problem of a field in an error."""
    text = f"{error.field} {error.problem}"
    return MissingField(field=error.field, code="invalid", reason=f"{text}. {error.hint}".rstrip())


def _split(name: str) -> list[str]:
    return re.split(r"(?<=[a-z0-9])(?=[A-Z])|[\s_-]+", name)


def _parse_json(text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text)
    except ValueError:
        return text
