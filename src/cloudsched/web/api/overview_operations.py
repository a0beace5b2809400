"""The operations on queues, workers, locks, counts, handlers and usage."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from cloudsched.domain.responses import overview_responses as responses
from cloudsched.engine.storage.pages import bad_token
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.engine.sweep.shard_sweeps import SweepNote


@operation("GET", "/v1/overview", "Tasks", query=bodies.AnyOwnerQuery, response_schema="OverviewCounts")
def get_overview(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """Count tasks by status, open work, problems, the executions that ended in each recent hour, and what is due.

    The counts are kept for ten seconds. Each ends at 10,000. Users see those of their own tasks.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    counts, sweep = call.app.container.many_tasks.overview.count(owner)
    causes = call.app.container.causes.find(owner)
    more = {"sweep": _make_sweep_state(call, sweep), "causes": causes}
    return json_response(counts.model_copy(update=more).to_wire())


@operation("GET", "/v1/changes", "Tasks", query=bodies.AnyOwnerQuery, response_schema="ChangeCursor")
def get_change_cursor(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """Get a text that is different after any task has changed: a cheap check that a list is still up to date.

    It costs one read. The text also changes each minute, since tasks that were deleted leave no trace.
    Users see whether one of their own tasks has changed.
    """
    container = call.app.container
    last = container.store.search.find_last_change(call.caller.resolve_listed_owner(query.owner))
    minute = int(container.clock.now().timestamp()) // 60
    cursor = hashlib.sha256(f"{minute} {last}".encode()).hexdigest()[:16]
    return json_response(responses.ChangeCursor(cursor=cursor).to_wire())


def _make_sweep_state(call: ApiCall, note: SweepNote | None) -> responses.SweepState | None:
    if note is None or call.caller.visible_owner is not None:
        return None
    lag = max(0.0, (call.app.container.clock.now() - note.updated_at).total_seconds())
    counts = {name: getattr(note, name) for name in ("examined", "dispatched", "unsent", "failed")}
    hanging = call.app.container.hanging or None
    return responses.SweepState(finished_at=note.updated_at, lag=lag, hanging=hanging, **counts)


def _decode_key(token: str | None) -> str:
    try:
        return bytes.fromhex(token or "").decode()
    except ValueError as error:
        raise bad_token() from error
