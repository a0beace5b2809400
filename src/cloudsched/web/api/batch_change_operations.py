"""The operation that changes all tasks that match a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents import overview_responses as responses
from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.batch_change import BatchChange, TaskFilter
from cloudsched.domain.documents.subjects import SYSTEM_OWNER
from cloudsched.errors import InvalidInput
from cloudsched.web.api.operation import operation
from cloudsched.web.api.request_bodies import BatchChangeRequest
from cloudsched.web.api.responses import json_response, task_response
from cloudsched.web.api.task_creation import read_idempotency_key
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.web.api.call import ApiCall

_NAMES: Final = ", ".join(sorted(field.alias or name for name, field in TaskFilter.model_fields.items()))


@operation(
    "POST",
    "/v1/tasks:batchChange",
    "Tasks",
    right=Right.WRITE,
    body=BatchChangeRequest,
    accepts_idempotency_key=True,
    success_statuses=(200, 202),
    response_schema="TaskCount",
    error_statuses=(422, 429),
)
def batch_change_tasks(call: ApiCall, body: BatchChangeRequest) -> Response:
    """Pause, resume, cancel, retry or delete all tasks that match a filter.

    With `dryRun`, the answer is how many there are now (200). Otherwise a task is created that changes them (202): its
    execution has the progress, and in the end the counts. Each task is changed as you may change it at that time; one
    that came to be after the request, or matches no longer, is left as it is. An `Idempotency-Key` makes the request
    safe to repeat. Users may have five open ones.
    """
    chosen = TaskFilter(**{name: getattr(body.filter, name) for name in body.filter.model_fields_set})
    if not chosen.to_wire():
        raise InvalidInput("filter", "is empty, and would match every task", f"Give one or more of {_NAMES}.")
    if call.caller.visible_owner is not None:
        chosen = chosen.model_copy(update={"owner": call.caller.resolve_owner(chosen.owner)})
    change = BatchChange(action=body.action, filter=chosen)
    changes = call.app.container.many_tasks.batch_changes
    key = read_idempotency_key(call.request)
    if body.dry_run:
        found = changes.count(change)
        return json_response(responses.TaskCount(count=found.count, is_at_least=found.is_at_least).to_wire())
    owner = SYSTEM_OWNER if call.caller.requesters is Requesters.SERVERS else str(call.caller.owner)
    return task_response(call, changes.start(change, owner, key, call.authority.actor), 202)
