"""Recognise a request that its caller sends again because the answer was lost.

A request is known by what was sent, before its words were read and defaults were applied: "in 2 seconds" means another
instant when it is read again. Such a repetition changes nothing, and gets the task as it is now.

* A request that names itself, by an idempotency key, a draft's token or an ETag, is known among the task's latest.
* A creation with an id of its caller's own is known by its content, until another creation has edited the task: the
  content that was first sent is then an edit back to it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.transitions.lifecycle import Transition

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.task import Task

MAX_REQUESTS: Final = 10
"""How many of the latest requests that name themselves a task remembers: about 150 bytes."""
_WRITE_MODEL: Final = operator.methodcaller("model_dump", mode="json", by_alias=True, exclude_defaults=True)
_BYTES: Final = 9
"""The length of a fingerprint, which is 12 characters as text."""


@dataclass(frozen=True, slots=True)
class RequestMark:
    """What identifies a request."""

    fingerprint: str
    names_itself: bool
    """Whether it says by a key, a token or an ETag which request it is; otherwise its content alone does."""
    depends_on_time: bool = False
    """Whether it may do more when it is sent later, as words do, or a key that names no state. It is then remembered
    even if it has changed nothing."""

    @classmethod
    def of_content(cls, content: object, *, depends_on_time: bool = False) -> RequestMark:
        """Return the mark of a creation that nothing but its content, with its id, identifies: JSON, or models."""
        return cls(_hash(content), names_itself=False, depends_on_time=depends_on_time)

    @classmethod
    def of_name(cls, name: str, content: object, *, depends_on_time: bool = True) -> RequestMark:
        """Return the mark of a request that a key, a token or an ETag names; with other content it is another one."""
        return cls(_hash([name, content]), names_itself=True, depends_on_time=depends_on_time)

    def is_known_to(self, task: Task) -> bool:
        """Return whether the task was created or edited by this very request."""
        if self.names_itself:
            return self.fingerprint in task.recent_requests
        return self.fingerprint == task.creation_fingerprint

    def fields(self, before: Task | None) -> dict[str, Any]:
        """Return what a task remembers once this request has created or edited it."""
        if not self.names_itself:
            return {"creation_fingerprint": self.fingerprint}
        known = () if before is None else before.recent_requests
        return {"recent_requests": (*known, self.fingerprint)[-MAX_REQUESTS:]}


def once(
    mark: RequestMark | None, decide: Callable[[Task, datetime], Transition]
) -> Callable[[Task, datetime], Transition]:
    """Return a decision that is made once for its request: a repetition changes nothing."""
    if mark is None:
        return decide

    def decide_once(task: Task, now: datetime) -> Transition:
        if mark.is_known_to(task):
            return Transition(task)
        decided = decide(task, now)
        if decided.task is task and not mark.depends_on_time:
            return decided
        return replace(decided, task=decided.task.model_copy(update=mark.fields(task)))

    return decide_once


def _hash(content: object) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=_WRITE_MODEL)
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:_BYTES]).decode()
