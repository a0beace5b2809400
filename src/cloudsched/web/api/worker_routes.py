"""What workers ask of the API: work, time to do it, and to be believed how it ended.

Each is bound by what it may see, as everywhere, and besides by its queues: another's task is answered like one that
does not exist. A lease token is told once, to whoever claims, and is neither shown nor logged again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cloudsched.domain.documents.execution import mark_of
from cloudsched.domain.documents.outcome import Cancel, Done, Fail, Retry, Snooze
from cloudsched.domain.documents.pull import Pull
from cloudsched.domain.transitions.finish import FAILURES, Report
from cloudsched.engine.execution.failure_hooks import failure_hook
from cloudsched.engine.execution.invoke import kept_error, kept_text, outcome_of
from cloudsched.engine.handlers.context import MAX_STEPS, kept_notice, kept_step
from cloudsched.engine.pull.offers import Wanted
from cloudsched.errors import InvalidInput, LeaseLost, NotFound
from cloudsched.web.api.parse import validated
from cloudsched.web.api.responses import ended_answer, instant, json_answer, shown
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from collections.abc import Sequence

    from werkzeug.wrappers import Response

    from cloudsched.domain.documents.execution import Execution, ProgressStep
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.pull.claims import Pulls
    from cloudsched.engine.pull.offers import Claim
    from cloudsched.web.api import request_bodies as said
    from cloudsched.web.api.call import Call

_TOLD_ONCE = {"Cache-Control": "no-store"}
"""Lease tokens are kept by nobody on the way."""


def claim(call: Call) -> Response:
    """Claim what a queue offers."""
    queue = validated(Pull, {"queue": call.path["queue"]}).queue
    call.caller.require_queue(queue)
    body = cast("said.WorkWanted", call.body())
    handlers = None if body.handlers is None else frozenset(body.handlers)
    owner = body.owner if call.caller.only is None else str(call.caller.owner_of_new(body.owner))
    wanted = Wanted(queue, body.skills, handlers, owner, body.worker)
    claims = call.app.pulls.claim(wanted, body.limit)
    return json_answer({"claims": [_claim_shown(each) for each in claims]}, headers=_TOLD_ONCE)


def heartbeat(call: Call) -> Response:
    """Renew a lease."""
    body = cast("said.Heartbeat", call.body())
    state = _pulls(call).heartbeat(*_key(call, body), _steps(call, body.progress) or None)
    if state.until is None:
        raise LeaseLost(call.path["executionId"])
    assert state.renewed_at is not None  # noqa: S101 - what was renewed was renewed at some time
    times = {"leaseUntil": instant(state.until), "renewedAt": instant(state.renewed_at)}
    return json_answer({**times, "isCancelled": state.is_cancelled})


def complete(call: Call) -> Response:
    """Record that the work is done, or that there was none."""
    body = cast("said.Completion", call.body())
    answer: Cancel | Done = Done(body.content)
    if body.status == "CANCELLED":
        _require_none(body, ("content", "notices"), "An execution that is CANCELLED has none.")
        answer = Cancel(body.message or "Cancelled by its worker.")
    else:
        _require_none(body, ("message",), "It says why an execution is CANCELLED.")
    outcome = outcome_of(answer, call.app.clock.now())
    return _answer(call, _finished(call, body, outcome=outcome, notices=_notices(body)))


def fail(call: Call) -> Response:
    """Record that an attempt has failed."""
    body = cast("said.Failure", call.body())
    error = kept_error(body.error.type, body.error.message, body.error.traceback)
    if body.is_final:
        _require_none(body, ("retry_after",), "No attempt follows one that is final.")
    answer = Fail(error.message) if body.is_final else Retry(error.message, body.retry_after)
    task = _finished(call, body, outcome=outcome_of(answer, call.app.clock.now()), error=error)
    record = _unannounced(call, task, body.lease_token)
    return _answer(call, task, {} if record is None else {"failedExecution": record.to_wire()})


def release(call: Call) -> Response:
    """Give back what a worker cannot finish."""
    body = cast("said.Release", call.body())
    reason = kept_text(body.reason or "Released by its worker.")
    steps = _steps(call, body.progress)
    if body.after is None:
        return _answer(call, _pulls(call).give_back(*_key(call, body), reason, steps or None))
    outcome = outcome_of(Snooze(body.after, reason), call.app.clock.now())
    return _answer(call, _pulls(call).finish(*_key(call, body), Report(outcome, progress=steps)))


def _pulls(call: Call) -> Pulls:
    def check(task: Task, queue: str | None) -> None:
        if not (call.caller.sees(task.owner) and call.caller.works_on(queue)):
            raise NotFound("task", task.id)

    return call.app.pulls.guarded(check)


def _key(call: Call, body: said.Heartbeat) -> tuple[str, str, str]:
    return call.task_id, call.path["executionId"], body.lease_token


def _finished(call: Call, body: said.Spent, **more: Any) -> Task:
    report = Report(progress=_steps(call, body.progress), queries=body.queries, tokens=body.tokens, **more)
    return _pulls(call).finish(*_key(call, body), report)


def _unannounced(call: Call, task: Task, lease_token: str) -> Execution | None:
    """Return the record of what has failed for good by this claim, if no `on_failure` was called for it here."""
    execution_id = call.path["executionId"]
    if task.run(execution_id) is not None or failure_hook(call.app.registry, task) is not None:
        return None
    record = call.app.store.execution(task.id, execution_id)
    if record is None or record.status not in FAILURES or record.attempts[-1].claim != mark_of(lease_token):
        return None
    return record.model_copy(update={"steps": (), "steps_reference": None})


def _answer(call: Call, task: Task, more: dict[str, Any] | None = None) -> Response:
    return ended_answer(task, more or {}, is_whole=call.caller.has(Right.READ))


def _steps(call: Call, progress: Sequence[said.Progress]) -> tuple[ProgressStep, ...]:
    now = call.app.clock.now()
    return tuple(kept_step(step.at or now, step.text) for step in progress[-MAX_STEPS:])


def _notices(body: said.Completion) -> tuple[Any, ...]:
    notices = []
    for number, notice in enumerate(body.notices):
        try:
            notices.append(kept_notice(notice.title, notice.body))
        except InvalidInput as error:
            raise InvalidInput(f"notices.{number}.{error.field}", error.problem, error.hint) from error
    return tuple(notices)


def _require_none(body: said.Heartbeat, names: Sequence[str], hint: str) -> None:
    """Refuse what would be dropped in silence."""
    for name in names:
        if getattr(body, name) not in (None, ()):
            field = type(body).model_fields[name].alias or name
            raise InvalidInput(field, "is given where there is none", hint)


def _claim_shown(claim: Claim) -> dict[str, Any]:
    task, run = claim.stored.task, claim.run
    assert run.lease is not None  # noqa: S101 - a claim is a lease
    return {
        "task": shown(task),
        "executionId": run.execution_id,
        "scheduledFor": instant(run.scheduled_for),
        "attempt": run.attempt,
        "startedAt": instant(run.lease.started_at),
        "progress": [step.to_wire() for step in run.progress],
        "leaseToken": run.lease.token,
        "leaseUntil": instant(run.lease.until),
    }
