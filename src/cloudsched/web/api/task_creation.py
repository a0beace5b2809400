"""The creation of every task by the API, and what makes it and later changes safe to repeat.

There are two ways, and with both the task stores a hash of the request. With an `id` of the caller's own, the same
request again changes nothing, and another one edits the task. With ``Idempotency-Key``
(draft-ietf-httpapi-idempotency-key-header), the task's id is derived from its owner, the key, and whether a user sends
it: a user neither finds nor blocks with it what a server makes for them. The task itself is the record of id or key, so
these cost no extra read or write and are remembered as long as the task exists. A handler with a ``task_id`` makes its
tasks' ids from their payloads: creating one again edits it, unless the key says that the request is the same.

Ids that users choose: users cannot see each other's tasks, so their ids must not collide. Each id is prefixed with a
hash of the owner unless it already has that prefix.

A request that changes a task may be sent again, too, when the answer was lost. Either a key identifies it
(``Idempotency-Key``), or the state that it changes (``If-Match``): the task remembers both in the commit of the change.
A repetition is not refused because that state has gone.

``validateOnly`` checks a creation, an edit or a trigger without storing it, and answers with what it would store.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from cloudsched.app import App, create_confirmed
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.task import owner_id_prefix
from cloudsched.domain.transitions.drafts import has_schedule_text
from cloudsched.domain.transitions.planning import upcoming_occurrences
from cloudsched.domain.transitions.request_marks import RequestMark
from cloudsched.drafts.tokens import FIELD, Requester
from cloudsched.engine.tasks.dry_run import WouldCommit, make_dry_scheduler
from cloudsched.errors import InvalidInput
from cloudsched.web.api.responses import json_response, make_occurrence, task_to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request, Response

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.authority import Authority
    from cloudsched.engine.tasks.scheduler import Scheduler
    from cloudsched.errors import QuotaExceeded
    from cloudsched.web.api.operation import ApiCall
    from cloudsched.web.auth.roles import Caller


PREVIEWED = 10
"""How many occurrences the answer has."""


class _DryApp(App):
    """The app for one request that stores nothing."""

    def __init__(self, app: App, authority: Authority) -> None:
        self.container = app.container
        self._authority = authority
        self._dry_scheduler = make_dry_scheduler(app.container.engine)

    @property
    def _scheduler(self) -> Scheduler:
        return self._dry_scheduler


def validate_only(
    call: ApiCall, act: Callable[[App], Task], show: Callable[[Task], dict[str, Any]] = lambda _: {}
) -> Response:
    """Run a change up to its commit; answer with the task as it would be, and when it would run.

    Args:
        call: The request.
        act: Makes the change.
        show: Returns what the answer shows of the changed task besides.
    """
    try:
        task = act(_DryApp(call.app, call.authority))
    except WouldCommit as stopped:
        task = stopped.task
    zone = task.timezone
    upcoming = [make_occurrence(at, zone).to_wire() for at in upcoming_occurrences(task, PREVIEWED)]
    content: dict[str, Any] = {**task_to_json(task), "upcoming": upcoming, **show(task)}
    return json_response(content)


IDEMPOTENCY_HEADER = "Idempotency-Key"
KEY_PATTERN = r"^[\x21-\x7e]{1,255}$"
_KEY = re.compile(KEY_PATTERN)


def read_idempotency_key(request: Request) -> str | None:
    """Return the request's idempotency key, if it has one.

    Raises:
        InvalidInput: The header is not a valid key.
    """
    key = request.headers.get(IDEMPOTENCY_HEADER)
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidInput(
            IDEMPOTENCY_HEADER, "is not a valid key", "Give 1 to 255 visible ASCII characters, such as a UUID."
        )
    return key


def create_or_edit(
    app: App,
    caller: Caller,
    content: dict[str, Any],
    key: str | None,
    batch_index: int | None = None,
    refusal: QuotaExceeded | None = None,
) -> tuple[Task, bool]:
    """Create a task, or edit the one with the same id; return it, and whether it is new.

    Args:
        app: The app to create it in.
        caller: The caller, who must be allowed to create tasks for the owner.
        content: The request's task.
        key: The request's idempotency key, if it has one. In a batch it is that of the tasks without an id.
        batch_index: The task's index in a batch, if it is part of one. Each index has a key of its own, and no key of a
            batch equals the key of a single request.
        refusal: Why no new task may be created, if that is known already; see `Scheduler.create`.

    Raises:
        Forbidden: The task would belong to another owner.
        InvalidInput: The content is invalid.
        KeyReused: The key was used with different content.
        QuotaExceeded: The caller has reached a limit, and the task is new.
    """
    owner = caller.resolve_owner(content.get("owner"))
    if FIELD in content and batch_index is None:  # the token makes it safe to repeat
        requester = Requester(caller.subject, str(owner or SYSTEM_OWNER))
        return create_confirmed(app, content, requester)
    content = {**content, **({} if owner is None else {"owner": owner})}
    requested_id = content.get("id")
    if refusal is not None and key is None and requested_id is None and not _derives_id(app, content):
        raise refusal  # it is certainly new, so it is not even read
    if key is not None and requested_id is not None and batch_index is None:
        hint = "A request with an id is already safe to repeat; omit one of the two."
        raise InvalidInput(IDEMPOTENCY_HEADER, "cannot be combined with an id", hint)
    if key is not None and requested_id is None:
        scope = [owner, key] if batch_index is None else [owner, key, batch_index]
        if caller.visible_owner is not None:  # users take no keys of servers that make tasks for them
            scope = ["user", *scope]
        if _derives_id(app, content):  # such an id is a better key, and the key says which request it is
            mark = RequestMark.of_name(scope, content)
            return app.put_content(content, mark=mark, refusal=refusal)
        keyed = {**content, "id": f"k{_hash(scope)[:32]}"}
        return app.put_content(keyed, mark=RequestMark.of_new_task(content), refusal=refusal)
    if caller.visible_owner is not None and isinstance(requested_id, str):
        prefix = owner_id_prefix(caller.visible_owner)
        content["id"] = requested_id if requested_id.startswith(prefix) else prefix + requested_id
    if requested_id is None:
        return app.put_content(content, refusal=refusal)
    mark = RequestMark.of_content([caller.requesters, content], depends_on_time=has_schedule_text(content))
    return app.put_content(content, mark=mark, refusal=refusal)


def _derives_id(app: App, content: dict[str, Any]) -> bool:
    return app.container.registry.derives_id(content.get("handler"))


def _hash(content: object) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def mark_change(call: ApiCall, verb: str, content: object = None, *, has_words: bool = False) -> RequestMark | None:
    """Return what identifies a change of a task; None if neither a key nor a state does.

    Args:
        call: The request.
        verb: What it does.
        content: What it says.
        has_words: Whether that is text, whose meaning depends on when it is read.

    Raises:
        InvalidInput: The key is not valid.
    """
    named = _find_name(call)
    if named is None:
        return None
    is_key = named[0] == _KEY_KIND
    name = [verb, *_sender(call), *named, *([] if is_key else [content])]  # several changes may name one state
    mark = RequestMark.of_name(name, content, depends_on_time=has_words or is_key)
    call.visibility.allow_repetition(lambda task: mark.find(task) is not None)
    return mark


_KEY_KIND = "key"


def _find_name(call: ApiCall) -> tuple[str, str] | None:
    """Return the key or the state that names a request, and which of both it is."""
    key, seen = read_idempotency_key(call.request), call.request.headers.get("If-Match", "*")
    if key is not None:
        return _KEY_KIND, key
    return None if seen == "*" else ("state", seen)


def _sender(call: ApiCall) -> list[str]:
    """Return who sends it: a server that acts for somebody sends requests of its own."""
    return [call.caller.subject, *([] if call.caller.via is None else [call.caller.via])]
