"""Draft tokens ensure that the stored task is the one that was shown.

* A token has a hash of every field that was shown. It is signed (HMAC-SHA256) with the app's secret, for a
  purpose of its own, so a token of a dispatch is none of these, nor the other way round.
* It holds for one caller, one owner and one task, for 15 minutes.
* It can be used again. A creation derives the task's id from the token, so a repetition creates nothing new.
  An update is refused once the task has changed, unless it has those values already.
* It allows nothing that the caller may not do without it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.responses.api_responses import DRAFT_TOKEN, MAX_DRAFT_TOKEN
from cloudsched.domain.transitions.task_draft import TaskDraft, apply_merge_patch, to_editable_fields
from cloudsched.errors import DraftExpired, InvalidInput, PreconditionFailed, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.signed_dispatches import SigningKeys

LIFETIME: Final = timedelta(minutes=15)
OPERATION: Final = "operation"
"""The field of a draft's changes that names an operation on the task."""
_AGAIN: Final = "Ask for a draft again (POST /v1/tasks/draft), show it, and confirm that one."


@dataclass(frozen=True, slots=True)
class Requester:
    """The person who asked for a draft, and its owner."""

    subject: str
    owner: str


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A token that fits its request. A new task's id is derived from `id`. A creation has no task's version."""

    id: str
    version: Sequence[object]
    fields: Mapping[str, Any]
    language: str = "en"
    """The language in which the draft was shown."""

    def check_task(self, task: Task) -> None:
        """Check that a task has not changed since the draft was shown, or has the shown values already.

        An operation is only done with the very task that was shown.
        """
        if list(self.version) == _name_version(task):
            return
        if OPERATION in self.fields:
            raise PreconditionFailed(f"task {task.id}")
        before = to_editable_fields(task)
        after = apply_merge_patch(before, dict(self.fields))
        if TaskDraft.from_wire(after) != TaskDraft.from_wire(before):
            raise PreconditionFailed(f"task {task.id}")


class DraftTokens:
    """Makes and checks draft tokens."""

    def __init__(self, keys: SigningKeys, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock

    def make(
        self, requester: Requester, fields: Mapping[str, Any], task: Task | None = None, language: str = "en"
    ) -> str:
        """Return the token of a draft: of a new task with these fields, or of these changes of a task."""
        content = {
            "id": secrets.token_hex(16),
            "by": _hash_requester(requester),
            "until": int((self._clock.now() + LIFETIME).timestamp()),
            "task": None if task is None else _name_version(task),
            "language": language,
            "fields": {name: _hash(name, value) for name, value in fields.items()},
        }
        body = json.dumps(content, separators=(",", ":")).encode()
        return f"{base64.urlsafe_b64encode(body).decode()}.{self._keys.sign(body).removeprefix('v1=')}"

    def check(
        self,
        token: object,
        requester: Requester,
        fields: Mapping[str, Any],
        task_id: str | None = None,
    ) -> Confirmed:
        """Return the confirmation in a token. Raises InvalidInput, or DraftExpired after 15 minutes."""
        content = self._read(token)
        if content["by"] != _hash_requester(requester):
            raise InvalidInput(DRAFT_TOKEN, "belongs to another caller or owner", _AGAIN)
        if content["until"] <= self._clock.now().timestamp():
            raise DraftExpired(DRAFT_TOKEN, f"is older than {LIFETIME.total_seconds() / 60:.0f} minutes", _AGAIN)

        version = content["task"] or [None]
        known_id = version[0]
        if known_id != task_id:
            what = "a change of another task or of this one" if known_id else "a new task"
            hint = "Create with the token of a creation, edit with an update's."
            raise InvalidInput(DRAFT_TOKEN, f"is of {what}", hint)

        shown: dict[str, str] = content["fields"]
        for name in sorted({*fields, *shown}):
            if name not in shown or name not in fields or _hash(name, fields[name]) != shown[name]:
                hint = f"Send what the draft has, or leave {DRAFT_TOKEN} out. {_AGAIN}"
                raise InvalidInput(name, "is not as the draft has it", hint)
        return Confirmed(content["id"], version, fields, content.get("language", "en"))

    def _read(self, token: object) -> Any:  # noqa: ANN401 - what we signed
        if not isinstance(token, str) or len(token) > MAX_DRAFT_TOKEN or not token.isascii():
            raise InvalidInput(DRAFT_TOKEN, "is not a draft's token", _AGAIN)
        encoded, _, signature = token.partition(".")
        try:
            body = base64.b64decode(encoded, altchars=b"-_", validate=True)
            self._keys.verify(body, f"v1={signature}")
            return json.loads(body)
        except (binascii.Error, ValueError, Unauthenticated):
            raise InvalidInput(DRAFT_TOKEN, "is not a draft's token, or was changed", _AGAIN) from None


def _name_version(task: Task) -> list[object]:
    """Return the version of a task. Another one may have got its id since."""
    return [task.id, task.revision, task.created_at.isoformat()]


def _hash_requester(requester: Requester) -> str:
    return _digest([requester.subject, requester.owner])


def _hash(name: str, value: object) -> str:
    return _digest([name, _normalize(value)])


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _normalize(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return JSON with whole numbers as integers: JavaScript writes 300.0 as 300."""
    if isinstance(value, dict):
        return {name: _normalize(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_normalize(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
