"""The operations on the queues in Cloud Tasks that carry dispatches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.queue_pause import QueuePause
from cloudsched.domain.documents.task import FieldChange, HistoryEntry
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.responses import overview_responses as responses
from cloudsched.engine.state.record_changes import change_record, delete_record, find_record, note_act
from cloudsched.errors import Forbidden, NotFound
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import json_response
from cloudsched.web.auth.roles import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from werkzeug.wrappers import Response

    from cloudsched.adapters.google.queue_admin import QueueAdmin


class PatchDispatchQueue(WireModel):
    """What is to change of a queue in Cloud Tasks: its state, its rates, or some of them."""

    state: Literal["RUNNING", "PAUSED"] | None = None
    """PAUSED keeps its dispatches, RUNNING delivers them again."""
    max_dispatches_per_second: Annotated[float, Field(gt=0, le=500)] | None = None
    max_concurrent_dispatches: Annotated[int, Field(strict=True, gt=0, le=5000)] | None = None


@operation("GET", "/v1/dispatch-queues", "Service", response_schema="DispatchQueueList")
def list_dispatch_queues(call: ApiCall) -> Response:
    """List the queues in Cloud Tasks that carry dispatches, with their states, rates and depths.

    Those that do not exist, or that the API's account may not see, are omitted. `serve` has none, and
    who sees only an owner's tasks gets none. Where the administration of queues is switched off, this and
    all below are refused.
    """
    queues: tuple[responses.DispatchQueue, ...] = ()
    if call.caller.visible_owner is None:
        admin = call.app.container.queue_admin
        if admin is not None:
            queues = tuple(_add_pause(call, each) for each in admin.list())
    return json_response(responses.DispatchQueueList(queues=queues).to_wire())


def _add_pause(call: ApiCall, queue: responses.DispatchQueue) -> responses.DispatchQueue:
    """Return a queue with who paused it, if it is paused and that is noted."""
    if queue.state is not responses.QueueState.PAUSED:
        return queue
    note = find_record(call.app.container.store.records, QueuePause, queue.queue)
    if note is None:
        return queue
    return queue.model_copy(update={"paused_by": note.by, "paused_at": note.created_at})


@operation(
    "PATCH",
    "/v1/dispatch-queues/{queue}",
    "Service",
    body=PatchDispatchQueue,
    response_schema="DispatchQueue",
    error_statuses=(404,),
)
def update_dispatch_queue(call: ApiCall, body: PatchDispatchQueue) -> Response:
    """Pause or resume a queue in Cloud Tasks, or change how fast it delivers. For admins.

    Who paused it, and when, is noted: explanations and the overview tell those who see the tasks of all owners.
    """
    rates = body.model_dump(include={"max_dispatches_per_second", "max_concurrent_dispatches"})
    queue = call.path["queue"]
    updated = _open_queue_admin(call).update(queue, body.state, rates)
    if body.state is not None:
        _note_pause(call, queue, is_paused=body.state == "PAUSED")
        _note_act(call, queue, Action.QUEUE_PAUSED if body.state == "PAUSED" else Action.QUEUE_RESUMED)
    changed = {to_camel(name): f"{rate:g}" for name, rate in rates.items() if rate is not None}
    if changed:
        _note_act(call, queue, Action.QUEUE_CHANGED, changed)
    call.app.container.forget_causes()
    return json_response(updated.to_wire())


@operation(
    "POST",
    "/v1/dispatch-queues/{queue}/purge",
    "Service",
    response_schema="DispatchQueue",
    error_statuses=(404,),
)
def purge_dispatch_queue(call: ApiCall) -> Response:
    """Delete all dispatches of a queue in Cloud Tasks. For admins.

    The sweep sends what is still to run within a minute or two of its time.
    """
    purged = _open_queue_admin(call).purge(call.path["queue"])
    _note_act(call, call.path["queue"], Action.QUEUE_PURGED)
    return json_response(purged.to_wire())


def _note_act(call: ApiCall, queue: str, action: Action, changed: Mapping[str, str] | None = None) -> None:
    """Note who did something to a queue, for the audit trail."""
    fields = tuple(FieldChange(field=name, after=value) for name, value in (changed or {}).items())
    container = call.app.container
    entry = HistoryEntry(at=container.clock.now(), action=action, by=call.authority.actor, fields=fields)
    note_act(container.store.records, entry, owner=SYSTEM_OWNER, queue=queue)


def _note_pause(call: ApiCall, queue: str, *, is_paused: bool) -> None:
    """Note who paused a queue, unless somebody is noted for it, or forget that."""
    container = call.app.container
    now = container.clock.now()
    if not is_paused:
        delete_record(container.store.records, QueuePause, queue)
        return
    note = QueuePause(id=queue, owner=SYSTEM_OWNER, created_at=now, updated_at=now, by=call.caller.subject)
    change_record(container.store.records, QueuePause, queue, lambda known: known or note)


def _open_queue_admin(call: ApiCall) -> QueueAdmin:
    """Return what administers queues. Raises Forbidden for all but admins or if it is off, or NotFound."""
    if call.caller.role is not Role.ADMIN:
        raise Forbidden("Only an admin may administer queues.")
    admin = call.app.container.queue_admin
    if admin is None:
        raise NotFound("queue", call.path["queue"])
    return admin
