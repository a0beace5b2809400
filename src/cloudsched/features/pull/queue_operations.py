"""The operations that show queues: what waits in them, and which workers listen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.responses import overview_responses as responses
from cloudsched.features.pull import presence, queries
from cloudsched.features.pull.fields import Pull, Skill
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.parse import validate_model
from cloudsched.web.api.responses import json_response
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from werkzeug.wrappers import Response


class QueuedTaskQuery(bodies.OwnerPageQuery):
    """The waiting tasks to list, and the page of the list to return."""

    skill: Skill | None = None
    """Only tasks that require this skill, or none. All if omitted."""


@operation("GET", "/v1/queues", "Workers", query=bodies.AnyOwnerQuery, response_schema="QueueList")
def list_queues(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """List the queues in which tasks wait or workers listen.

    There is one entry for each queue and each skill that a waiting task requires. Users see their own.
    """
    container = call.app.container
    shown = queries.list_queues(
        container.store,
        call.caller.resolve_listed_owner(query.owner),
        container.clock.now(),
    )
    return json_response(responses.QueueList(queues=shown).to_wire())


@operation(
    "GET",
    "/v1/queues/{queue}/tasks",
    "Workers",
    right=Right.QUEUES,
    query=QueuedTaskQuery,
    response_schema="QueuedTaskPage",
)
def list_queued_tasks(call: ApiCall, query: QueuedTaskQuery) -> Response:
    """List the tasks that wait in a queue, in the order in which workers get them. Nothing is claimed.

    A worker sees what it may claim, and claims the one that it chooses by its `taskId`.

    As long as the response has a `nextPageToken`, repeat the request with it.
    """
    queue = validate_model(Pull, {"queue": call.path["queue"]}).queue
    call.caller.require_queue(queue)
    owner = call.caller.resolve_listed_owner(query.owner)
    store, now = call.app.container.store, call.app.container.clock.now()
    token = query.page_token or None
    found = queries.list_queued_tasks(store, queue, query.skill, owner, now, limit=query.page_size, page_token=token)
    return json_response(found.to_wire())


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
