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
import json
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloudsched.domain.responses.api_responses import DRAFT_TOKEN, MAX_DRAFT_TOKEN
from cloudsched.domain.transitions.idempotency import hash_name
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


class Requester(NamedTuple):
    """The person who asked for a draft, and its owner."""

    subject: str
    owner: str


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A token that fits its request. A new task's id is derived from `id`. A creation has no task's version."""

    id: str
    version: Sequence[object]
    fields: dict[str, Any]
    language: str
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
        after = apply_merge_patch(before, self.fields)
        if TaskDraft.from_wire(after) != TaskDraft.from_wire(before):
            raise PreconditionFailed(f"task {task.id}")


class DraftTokens:
    """Makes and checks draft tokens."""

    def __init__(self, keys: SigningKeys, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock

    def make(self, requester: Requester, fields: Mapping[str, Any], task: Task | None, language: str) -> str:
        """Return the token of a draft: of a new task with these fields, or of these changes of a task."""
        content = {
            "id": secrets.token_hex(16),
            "by": hash_name(requester),
            "until": int((self._clock.now() + LIFETIME).timestamp()),
            "task": [None] if task is None else _name_version(task),
            "language": language,
            "fields": {name: _hash(name, value) for name, value in fields.items()},
        }
        body = json.dumps(content, separators=(",", ":")).encode()
        return f"{base64.urlsafe_b64encode(body).decode()}.{self._keys.sign(body)}"

    def check(self, token: object, requester: Requester, fields: dict[str, Any], task_id: str | None) -> Confirmed:
        """Return the confirmation in a token. Raises InvalidInput, or DraftExpired after 15 minutes."""
        content = self._read(token)
        if content["by"] != hash_name(requester):
            raise InvalidInput(DRAFT_TOKEN, "belongs to another caller or owner", _AGAIN)
        if content["until"] <= self._clock.now().timestamp():
            raise DraftExpired(DRAFT_TOKEN, f"is older than {LIFETIME.total_seconds() / 60:.0f} minutes", _AGAIN)

        known_id = content["task"][0]
        if known_id != task_id:
            what = "a change of another task or of this one" if known_id else "a new task"
            hint = "Create with the token of a creation, edit with an update's."
            raise InvalidInput(DRAFT_TOKEN, f"is of {what}", hint)

        shown: dict[str, str] = content["fields"]
        for name in sorted({*fields, *shown}):
            if name not in shown or name not in fields or _hash(name, fields[name]) != shown[name]:
                hint = f"Send what the draft has, or leave {DRAFT_TOKEN} out. {_AGAIN}"
                raise InvalidInput(name, "is not as the draft has it", hint)
        return Confirmed(content["id"], content["task"], fields, content["language"])

    def _read(self, token: object) -> Any:  # noqa: ANN401 - what we signed
        encoded, _, signature = str(token)[:MAX_DRAFT_TOKEN].partition(".")
        try:
            body = base64.b64decode(encoded, altchars=b"-_", validate=True)
            self._keys.verify(body, signature)
        except (ValueError, Unauthenticated):
            raise InvalidInput(DRAFT_TOKEN, "is not a draft's token, or was changed", _AGAIN) from None
        return json.loads(body)


def _name_version(task: Task) -> list[object]:
    """Return the version of a task. Another one may have got its id since."""
    return [task.id, task.revision, task.created_at.isoformat()]


def _hash(name: str, value: object) -> str:
    """Return the hash of a field, the same for 300.0 as for 300, as which JavaScript writes it."""
    return hash_name([name, json.loads(json.dumps(value), parse_float=_to_number)])


def _to_number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number
