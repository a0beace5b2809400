"""The operation that lists locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.responses import overview_responses as responses
from cloudsched.features.locks import queries
from cloudsched.features.locks.fields import describe_lock_key
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.overview_operations import _decode_key
from cloudsched.web.api.responses import json_response

if TYPE_CHECKING:
    from datetime import datetime

    from werkzeug.wrappers import Response

    from cloudsched.features.locks.lock import Holder, Waiter


@operation("GET", "/v1/locks", "Workers", query=bodies.OwnerPageQuery, response_schema="LockPage")
def list_locks(call: ApiCall, query: bodies.OwnerPageQuery) -> Response:
    """List the locks that are held or waited for, with their holders and those who wait, in order.

    With an owner, the list has the locks that only this owner's tasks share (`lockScope: owner`). Users
    see these of their own. As long as the response has a `nextPageToken`, repeat the request with it.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    after = _decode_key(query.page_token)
    states, last = queries.list_locks(call.app.container.store, owner, query.page_size, after)
    page = responses.LockPage(
        locks=tuple(map(_make_lock, states)), next_page_token=None if last is None else last.encode().hex()
    )
    return json_response(page.to_wire())


def _make_lock(state: queries.LockState) -> responses.LockDetails:
    key, scope, owner = describe_lock_key(state.lock.key)

    def show(one: Holder | Waiter, **more: datetime | None) -> responses.LockParty:
        title = state.tasks[one.task_id].title if one.task_id in state.tasks else None
        return responses.LockParty(task_id=one.task_id, execution_id=one.execution_id, title=title, **more)

    return responses.LockDetails(
        key=key,
        scope=scope,
        owner=owner,
        holders=tuple(show(one, until=one.until) for one in state.lock.holders),
        waiters=tuple(show(one, due_at=one.due_at, notified_at=one.notified_at) for one in state.waiters),
        has_more_waiters=state.has_more,
    )
