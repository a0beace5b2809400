"""What the end of a run says to its owner. All channels and the inbox follow from what is found here.

A success says its handler's notices, or else its result. One that says nothing is not delivered: there is neither a
notice with a text, nor a result with a value. No channel has anything to add to that.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.json_limits import truncate

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.outcome import Done

MAX_BODY: Final = 100_000
"""The most bytes of text of one message that a result becomes. The whole result is in its execution."""


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A message for the owner's inbox, sent when the attempt succeeds."""

    title: str
    body: str


def says_nothing(content: object) -> bool:
    """Return whether a result holds no value: null, a blank text, or lists and objects of nothing else.

    0 and False are values. The result of children that all said nothing is a list of nulls.
    """
    match content:
        case None:
            return True
        case str():
            return not content.strip()
        case dict():
            return all(map(says_nothing, content.values()))
        case list():
            return all(map(says_nothing, content))
        case _:
            return False


def find_spoken(notices: Sequence[InboxMessage]) -> tuple[InboxMessage, ...]:
    """Return those of a handler's notices that have a text."""
    return tuple(each for each in notices if each.title.strip() or each.body.strip())


def find_said(task: Task, done: Done, notices: Sequence[InboxMessage]) -> tuple[InboxMessage, ...]:
    """Return what a success says: its handler's notices, or else its result as a message, or nothing."""
    spoken = find_spoken(notices)
    if spoken or done.silent or says_nothing(done.content):
        return spoken
    is_text = isinstance(done.content, str)
    text = done.content if is_text else json.dumps(done.content, ensure_ascii=False, indent=2)
    return (InboxMessage(task.delivery_title or task.title, truncate(text, MAX_BODY)),)
