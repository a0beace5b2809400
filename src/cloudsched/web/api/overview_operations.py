"""The operations on queues, workers, locks, counts, handlers and usage."""

from __future__ import annotations

import hashlib
import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PydanticInvalidForJsonSchema, PydanticUserError, TypeAdapter

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.pull import OfferEntry, Pull
from cloudsched.domain.documents.task import Task  # noqa: TC001 - pydantic reads them
from cloudsched.domain.documents.usage import Month, UsageCounts
from cloudsched.domain.responses import overview_responses as responses
from cloudsched.engine.pull import presence
from cloudsched.engine.queries import queues as queues_and_locks
from cloudsched.engine.storage.pages import bad_token
from cloudsched.errors import NotFound
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.parse import validate_model
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.adapters.google.queue_admin import QueueAdmin
    from cloudsched.config.settings import Prices
    from cloudsched.engine.handlers.registry import Handler
    from cloudsched.engine.sweep.shard_sweeps import SweepNote


class PatchDispatchQueue(WireModel):
    """What is to change of a queue in Cloud Tasks: its state, its rates, or some of them."""

    state: Literal["RUNNING", "PAUSED"] | None = None
    """PAUSED keeps its dispatches, RUNNING delivers them again."""
    max_dispatches_per_second: Annotated[float, Field(gt=0, le=500)] | None = None
    max_concurrent_dispatches: Annotated[int, Field(strict=True, gt=0, le=5000)] | None = None


@operation("GET", "/v1/queues", "Workers", query=bodies.AnyOwnerQuery, response_schema="QueueList")
def list_queues(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """List the queues in which tasks wait or workers listen.

    There is one entry for each queue and each skill that a waiting task requires. Users see their own.
    """
    container = call.app.container
    shown = queues_and_locks.list_queues(
        container.store, call.caller.resolve_listed_owner(query.owner), container.clock.now()
    )
    return json_response(responses.QueueList(queues=shown).to_wire())


@operation("GET", "/v1/dispatch-queues", "Service", response_schema="DispatchQueueList")
def list_dispatch_queues(call: ApiCall) -> Response:
    """List the queues in Cloud Tasks that carry dispatches, with their states, rates and depths.

    Those that do not exist, or that the API's account may not see, are left out. `serve` has none, and who sees only an
    owner's tasks gets none. Where the administration of queues is switched off, this and all below are refused.
    """
    admin = None if call.caller.visible_owner is not None else call.app.container.queue_admin
    queues = () if admin is None else admin.list()
    return json_response(responses.DispatchQueueList(queues=queues).to_wire())


@operation(
    "PATCH",
    "/v1/dispatch-queues/{queue}",
    "Service",
    body=PatchDispatchQueue,
    response_schema="DispatchQueue",
    error_statuses=(404,),
)
def update_dispatch_queue(call: ApiCall, body: PatchDispatchQueue) -> Response:
    """Pause or resume a queue in Cloud Tasks, or change how fast it delivers. For admins."""
    rates = body.model_dump(include={"max_dispatches_per_second", "max_concurrent_dispatches"})
    return json_response(_open_queue_admin(call).update(call.path["queue"], body.state, rates).to_wire())


@operation(
    "POST", "/v1/dispatch-queues/{queue}/purge", "Service", response_schema="DispatchQueue", error_statuses=(404,)
)
def purge_dispatch_queue(call: ApiCall) -> Response:
    """Delete all dispatches of a queue in Cloud Tasks. For admins.

    The sweep sends what is still to run within a minute or two of its time.
    """
    return json_response(_open_queue_admin(call).purge(call.path["queue"]).to_wire())


def _open_queue_admin(call: ApiCall) -> QueueAdmin:
    """Return what administers queues. Raises Forbidden for all but admins, or if it is off, and NotFound."""
    call.require_admin("administer queues")
    admin = call.app.container.queue_admin
    if admin is None:
        raise NotFound("queue", call.path["queue"])
    return admin


@operation("GET", "/v1/queues/{queue}/tasks", "Workers", query=bodies.OwnerPageQuery, response_schema="QueuedTaskPage")
def list_queued_tasks(call: ApiCall, query: bodies.OwnerPageQuery) -> Response:
    """List the tasks that wait in a queue, in the order in which workers get them. Nothing is claimed.

    As long as the response has a `nextPageToken`, repeat the request with it.
    """
    queue = validate_model(Pull, {"queue": call.path["queue"]}).queue
    owner = call.caller.resolve_listed_owner(query.owner)
    found = queues_and_locks.list_queued_tasks(
        call.app.container.store, queue, owner, query.page_size, query.page_token or None
    )
    shown = tuple(_make_queued_task(offer, task) for offer, task in found.items)
    return json_response(responses.QueuedTaskPage(tasks=shown, next_page_token=found.next_page_token).to_wire())


@operation("GET", "/v1/workers", "Workers", query=bodies.AnyOwnerQuery, response_schema="WorkerList")
def list_workers(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """List the workers that have asked for work in the last day.

    With an owner, the list has only workers that run nobody else's tasks. Users see these of their own.
    """
    container = call.app.container
    now = container.clock.now()
    shown = tuple(
        responses.WorkerNote(
            worker=one.worker,
            queue=one.queue,
            skills=one.skills,
            owner=one.serves,
            claimed_by=one.claimed_by,
            seen_at=one.seen_at,
            is_listening=presence.is_listening(one, now),
        )
        for one in presence.list_workers(container.store, call.caller.resolve_listed_owner(query.owner))
    )
    return json_response(responses.WorkerList(workers=shown).to_wire())


@operation("GET", "/v1/overview", "Tasks", query=bodies.AnyOwnerQuery, response_schema="OverviewCounts")
def get_overview(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """Count tasks by status, open work, problems, the executions that ended in each recent hour, and what is due.

    The counts are kept for ten seconds. Each ends at 10,000. Users see those of their own tasks.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    counts, sweep = call.app.container.many_tasks.overview.count(owner)
    return json_response(counts.model_copy(update={"sweep": _make_sweep_state(call, sweep)}).to_wire())


@operation("GET", "/v1/changes", "Tasks", query=bodies.AnyOwnerQuery, response_schema="ChangeCursor")
def get_change_cursor(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """Get a text that is different after any task has changed: a cheap check that a list is still up to date.

    It costs one read. The text also changes each minute, since tasks that were deleted leave no trace. Users see
    whether one of their own tasks has changed.
    """
    container = call.app.container
    last = container.store.search.find_last_change(call.caller.resolve_listed_owner(query.owner))
    minute = int(container.clock.now().timestamp()) // 60
    cursor = hashlib.sha256(f"{minute} {last}".encode()).hexdigest()[:16]
    return json_response(responses.ChangeCursor(cursor=cursor).to_wire())


@operation("GET", "/v1/handlers", "Tasks", response_schema="HandlerList")
def list_handlers(call: ApiCall) -> Response:
    """List the handlers that you may name in a task, with the JSON schemas of their payloads.

    Users see those that are open to users. Handlers that only workers have are not known here.
    """
    registry = call.app.container.registry
    visible = registry if call.caller.requesters is Requesters.SERVERS or call.caller.visible_owner is None else None
    shown = sorted(visible or registry.for_users(), key=lambda each: each.name)
    handlers = tuple(_make_handler(each) for each in shown if not each.is_built_in)
    return json_response(responses.HandlerList(handlers=handlers).to_wire())


def _make_sweep_state(call: ApiCall, note: SweepNote | None) -> responses.SweepState | None:
    if note is None or call.caller.visible_owner is not None:
        return None
    lag = max(0.0, (call.app.container.clock.now() - note.updated_at).total_seconds())
    counts = {name: getattr(note, name) for name in ("examined", "dispatched", "unsent", "failed")}
    hanging = call.app.container.hanging or None
    return responses.SweepState(finished_at=note.updated_at, lag=lag, hanging=hanging, **counts)


def _make_handler(handler: Handler) -> responses.HandlerInfo:
    about = inspect.cleandoc(handler.function.__doc__ or "").partition("\n\n")[0]
    events = {name: _make_schema(each.adapter) for name, each in handler.events.items()}
    return responses.HandlerInfo(
        name=handler.name,
        description=" ".join(about.split()) or None,
        access=handler.access,
        is_tool=handler.is_tool,
        queue=None if handler.pull is None else handler.pull.queue,
        query_per_execution=handler.query_per_execution,
        tokens_per_execution=handler.tokens_per_execution,
        payload_schema=None if handler.payload is None else _make_schema(handler.payload),
        event_schemas={name: schema for name, schema in events.items() if schema is not None} or None,
    )


def _make_schema(kind: TypeAdapter[Any]) -> dict[str, Any] | None:
    with suppress(PydanticInvalidForJsonSchema, PydanticUserError):
        return kind.json_schema()
    return None


def _make_queued_task(offer: OfferEntry, task: Task | None) -> responses.QueuedTask:
    rank = int(offer.order.partition(" ")[0])
    return responses.QueuedTask(
        task_id=offer.task_id,
        owner=offer.owner,
        handler=offer.handler,
        title=None if task is None else task.title,
        skill=offer.queue_key.partition("/")[2] or None,
        priority=tuple(Priority)[rank],
        offered_at=queues_and_locks.get_offered_since(offer),
    )


def _decode_key(token: str | None) -> str:
    try:
        return bytes.fromhex(token or "").decode()
    except ValueError as error:
        raise bad_token() from error


class UsageQuery(bodies.OwnerPageQuery):
    """The owner, the handler and the month whose usage to show."""

    handler: str | None = None
    """Only this handler's usage."""
    month: Month | None = None
    """The month in UTC, such as ``2026-11``. The current one if omitted."""


@operation("GET", "/v1/usage", "Usage", query=UsageQuery, response_schema="UsagePage")
def get_usage(call: ApiCall, query: UsageQuery) -> Response:
    """Show the usage of a month, by owner and handler.

    It has executions, queries and tokens with their estimates, the Firestore and Cloud Tasks operations that running
    the tasks needed, and their cost by the deployment's prices. Users see their own. Each request adds the changes
    since the last one, with one read for each task that has changed. A page has at most `pageSize` owners. As long as
    the response has a `nextPageToken`, repeat the request with it.
    """
    container = call.app.container
    owner = call.caller.resolve_listed_owner(query.owner)
    found = container.many_tasks.usage.show(
        owner, query.month, limit=query.page_size, page_token=query.page_token or None
    )
    rows = [each for each in found.rows if query.handler in {None, each.handler}]
    prices = container.settings.prices
    page = responses.UsagePage(
        month=found.month,
        usage=tuple(
            responses.UsageRow(
                owner=each.owner, handler=each.handler, month=each.month, **_to_fields(each.counts, prices)
            )
            for each in rows
        ),
        total=responses.UsageAmounts(**_to_fields(sum((each.counts for each in rows), start=UsageCounts()), prices)),
        summed_until=found.summed_until,
        is_complete=found.is_complete,
        prices=prices.per_million,
        next_page_token=found.next_page_token,
    )
    return json_response(page.to_wire())


def _to_fields(counts: UsageCounts, prices: Prices) -> dict[str, Any]:
    dollars = prices.cost(responses.to_amounts(counts))
    operations = {"queue_operations": 2 * counts.dispatches, "requests": counts.dispatches}
    known = counts.model_dump(exclude={"dispatches"})
    return {**known, **operations, "dollars": round(dollars, 9)}
