"""The operation that makes drafts of tasks from what people say, and what confirms them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from werkzeug.wrappers import Response

from cloudsched import app
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.recurrence.allowance import REQUEST_STEPS, spend_from, take_part
from cloudsched.drafts.request import DraftRequest
from cloudsched.drafts.tokens import Requester
from cloudsched.errors import CloudschedError
from cloudsched.web.api.operation import operation
from cloudsched.web.api.problems import render_problem
from cloudsched.web.api.responses import CACHE_HEADERS, json_response
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.recurrence.allowance import Allowance
    from cloudsched.drafts.service import Steps
    from cloudsched.web.api.operation import ApiCall

EVENT_STREAM: Final = "text/event-stream"


@operation(
    "POST",
    "/v1/tasks:draft",
    "Tasks",
    right=Right.WRITE,
    content=DraftRequest,
    response_schema="DraftResult",
)
def draft_task(call: ApiCall) -> Response:
    """Draft a task, or a change of one, from what somebody says.

    Nothing is stored. Show the draft, and confirm it: send its `task` to `POST /v1/tasks`, or its `changes` to
    `PATCH /v1/tasks/{taskId}`, unchanged and with its `draftToken`, within 15 minutes. There is no token as long as
    `questions` or `missing` has anything. With `Accept: text/event-stream` each step is an event `step` as it begins,
    and the draft is the last event, `draft`.
    """
    from cloudsched.drafts.service import Access  # noqa: PLC0415 - it brings the grammar, which few processes need

    request = DraftRequest.from_wire(call.read_content())
    access = Access(_requester(call, request.owner), call.authority)
    drafts = call.app.container.drafts
    if call.request.accept_mimetypes.best_match(["application/json", EVENT_STREAM]) != EVENT_STREAM:
        return json_response(drafts.make(request, access).to_wire())
    events = _stream(drafts.steps(request, access), take_part(REQUEST_STEPS))
    return Response(events, content_type=f"{EVENT_STREAM}; charset=utf-8", headers=CACHE_HEADERS)


def patch_confirmed(call: ApiCall, content: dict[str, Any]) -> Task:
    """Change a task as a draft has shown."""
    owner = call.app.get(call.task_id).owner
    requester = Requester(call.caller.subject, owner)
    return app.patch_confirmed(call.app, call.task_id, content, requester)


def _requester(call: ApiCall, owner: str | None) -> Requester:
    return Requester(call.caller.subject, str(call.caller.resolve_owner(owner) or SYSTEM_OWNER))


def _stream(steps: Steps, allowance: Allowance) -> Iterator[str]:
    """Yield a draft's steps as events, and then the draft, or the problem that it ran into.

    They are made while they are sent, when the request has left its door: they spend from its allowance all the same.
    """
    try:
        while True:
            with spend_from(allowance):
                step = next(steps)
            yield _event("step", step.to_wire())
    except StopIteration as stop:
        yield _event("draft", stop.value.to_wire())
    except CloudschedError as error:
        yield _event("problem", json.loads(render_problem(error).get_data(as_text=True)))


def _event(name: str, content: object) -> str:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {text}\n\n"
