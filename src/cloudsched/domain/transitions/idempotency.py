"""Recognise a request that comes again because its answer was lost.

A request is known by its original content, before its words were read and defaults were applied: "in 2
seconds" means another instant when it is read again. A task keeps the marks of its latest requests. A
repetition changes nothing, and gets the task as it is now.

* A request that is named, by an idempotency key, a draft's token or an ETag, is known by its name. With
  other content the same name is refused.
* A creation with an id of its caller's own is known by its content, until another creation has edited the
  task: the content that was first sent is then an edit back to it.
* A creation with a key makes its task's id from that. It never edits a task.
* A request without a name that must be done once, such as a trigger, gets its name from the code that
  decides it, since a commit whose answer was lost is decided again.
* An event is also known by its content, its sender and the execution that it was for (`Event.mark`).

The marks of creations are kept as long as the task exists, and otherwise the latest ones of each side. So
neither a user nor a worker can make a task forget what a server has asked for, and requests without names
displace none.
"""

from __future__ import annotations

import base64
import hashlib
import json
import operator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.task import CREATION_KEYS, RecentRequest, RequestKind, Task
from cloudsched.domain.transitions.commit import Commit
from cloudsched.errors import KeyReused

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.authority import EventSender

_BY_ID: Final = "id"
_BY_KEY: Final = "key"
_WRITE_MODEL: Final = operator.methodcaller("model_dump", mode="json", by_alias=True, exclude_defaults=True)
_to_text: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_WRITE_MODEL).encode
_BYTES: Final = 9
"""The length of a hash, which is 12 characters as text."""


@dataclass(frozen=True, slots=True)
class RequestMark:
    """The identity of a request."""

    key: str
    content: str = ""
    depends_on_time: bool = False
    """True if it may do more when it is sent later, as words do, or a key that names no state.

    It is then remembered even if it has changed nothing.
    """
    kind: RequestKind = RequestKind.NAMED

    @classmethod
    def of_content(cls, content: object, *, depends_on_time: bool = False) -> RequestMark:
        """Return the mark of a creation that only its content, with its id, identifies: JSON, or models."""
        return cls(_BY_ID, _hash(content), depends_on_time=depends_on_time)

    @classmethod
    def of_new_task(cls, content: object) -> RequestMark:
        """Return the mark of a creation whose key makes its task's id: an existing task is not edited."""
        return cls(_BY_KEY, _hash(content))

    @classmethod
    def of_declaration(cls, name: str) -> RequestMark:
        """Return the mark of a task that code declares. No hash has a colon, so no caller can forge it."""
        return cls(_BY_KEY, f"declared:{name}")

    @classmethod
    def of_name(cls, name: object, content: object = None, *, depends_on_time: bool = True) -> RequestMark:
        """Return the mark of a request that a name identifies, such as a key with who sends it."""
        return cls(_hash(name), "" if content is None else _hash(content), depends_on_time=depends_on_time)

    @property
    def only_creates(self) -> bool:
        """Return whether an existing task is either its own or refused."""
        return self.key == _BY_KEY

    def find(self, task: Task) -> RecentRequest | None:
        """Return this very request, if the task remembers it.

        Raises KeyReused if its name was used for another request.
        """
        found = next((each for each in task.recent_requests if each.key == self.key), None)
        if found is None or found.content == self.content:
            return found
        if self.key == _BY_ID:
            return None
        raise key_reused()

    def is_repeat_on(self, task: Task) -> bool:
        """Return whether the task remembers this very request."""
        return any(each.key == self.key and each.content == self.content for each in task.recent_requests)

    def fields(self, task: Task | None, now: datetime, sender: EventSender | None) -> dict[str, Any]:
        """Return the fields in which a task remembers this request of a sender."""
        at = None if self.key in CREATION_KEYS else choose_instant(task, now)
        side = "" if sender is None else sender.side
        request = RecentRequest(key=self.key, content=self.content, at=at, side=side, kind=self.kind)
        return {"recent_requests": (request,) if task is None else task.requests_with(request)}


def choose_instant(task: Task | None, now: datetime) -> datetime:
    """Return the instant of a task's next request: now, or just after the latest one if that is later."""
    known = [] if task is None else [each.at for each in task.recent_requests if each.at is not None]
    return max(now, known[-1] + timedelta(microseconds=1)) if known else now


def key_reused() -> KeyReused:
    """Return the refusal of a key that was used for another request."""
    hint = "A key identifies one request; use a new key for a different request."
    return KeyReused("Idempotency-Key", "was already used for a different request", hint)


def once(
    mark: RequestMark | None, sender: EventSender | None, decide: Callable[[Task, datetime], Commit]
) -> Callable[[Task, datetime], Commit]:
    """Return a decision that is made once for its sender's request: a repetition changes nothing."""
    if mark is None:
        return decide

    def decide_once(task: Task, now: datetime) -> Commit:
        if mark.find(task) is not None:
            return Commit(task)
        decided = decide(task, now)
        if decided.task is task and not mark.depends_on_time:
            return decided
        return replace(decided, task=decided.task.model_copy(update=mark.fields(decided.task, now, sender)))

    return decide_once


def _hash(content: object) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(_to_text(content).encode()).digest()[:_BYTES]).decode()


def hash_name(name: object) -> str:
    """Return the hash of a key in its scope, which makes the id of a task."""
    return hashlib.sha256(json.dumps(name, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
