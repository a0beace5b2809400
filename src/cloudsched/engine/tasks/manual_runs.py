"""Start runs of a task by hand: trigger it, retry an execution, run a past range again."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.journal import StepKind, StepStatus
from cloudsched.domain.documents.json_limits import to_json_value
from cloudsched.domain.documents.task import RequestKind, TaskStatus
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.transitions import lifecycle, manual_verbs, retry_execution
from cloudsched.domain.transitions.idempotency import RequestMark
from cloudsched.domain.transitions.task_draft import TaskDraft, edit_draft
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.handlers.user_access import require_user_start
from cloudsched.errors import InvalidInput, NotAllowed, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.journal import StepRecord
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import Commit, RecordWrite
    from cloudsched.engine.authority import Authority
    from cloudsched.engine.child_tasks import ChildTasks
    from cloudsched.engine.engine_context import EngineContext

    Decide = Callable[[Task, datetime], Commit]
    """Decides how a task changes."""
    Act = Callable[[str, Action, Decide, Authority, str | None, RequestMark | None], Task]
    """Changes a task as a decision says, once for a mark, and notes who did what, with a reason if there is
    one."""

_BETWEEN_RESENDS: Final = timedelta(minutes=1)
OWN_PAYLOAD: Final = "With a payload of its own."
"""The reason of such a trigger in a task's history."""


def make_mark() -> RequestMark:
    """Return the mark of a request without a name, which finds its own commit after a lost answer."""
    return replace(RequestMark.of_name(secrets.token_hex(8), depends_on_time=False), kind=RequestKind.UNNAMED)


def to_payload(value: object) -> dict[str, Any]:
    """Return a payload as JSON. Raises InvalidInput if it is no object."""
    payload = to_json_value("payload", value)
    if not isinstance(payload, dict):
        raise InvalidInput(
            "payload",
            "is not an object",
            "Give one JSON object, {…}, or a model of its fields.",
        )
    return payload


def _was_not_told(call: StepRecord, execution: Execution) -> bool:
    """Return whether a call's outcome is in the record only because its caller ended: `with_call_outcomes`."""
    return call.status is StepStatus.WAITING or (
        call.status is StepStatus.FAILED and call.noticed_at == execution.finished_at
    )


class ManualRuns:
    """Starts runs by hand."""

    def __init__(
        self,
        engine: EngineContext,
        child_tasks: ChildTasks,
        validate: Callable[[TaskDraft, Authority, Collection[str]], TaskDraft],
        act: Act,
    ) -> None:
        self._engine = engine
        self._child_tasks = child_tasks
        self._validate = validate
        self._act = act

    def trigger(
        self,
        task_id: str,
        payload: Any = None,  # noqa: ANN401 - as the handler takes it
        mark: RequestMark | None = None,
        *,
        by: Authority,
    ) -> Task:
        """Run a task now, besides its schedule, perhaps with another payload.

        Raises InvalidInput or KeyReused.
        """
        given = None if payload is None else to_payload(payload)

        def decide(task: Task, now: datetime) -> Commit:
            if given is not None:
                self._validate(edit_draft(task, {}).model_copy(update={"payload": given}), by, ("payload",))
            return manual_verbs.trigger(task, now, given, author=by.author)

        reason = None if given is None else OWN_PAYLOAD
        return self.start(task_id, Action.TRIGGERED, decide, by, reason, mark or make_mark())

    def retry(
        self,
        task_id: str,
        execution_id: str | None = None,
        *,
        from_step: int | None = None,
        by: Authority,
        mark: RequestMark | None = None,
    ) -> Task:
        """Give an execution one more attempt, by default the one that finished last, once for each mark.

        Without `from_step`, only the step that made it fail is forgotten. With it, that one and all after it
        are. Raises NotFound, InvalidInput or NotAllowed.
        """
        decide = partial(self._decide_retry, execution_id, from_step, by)
        return self.start(task_id, Action.RETRIED, decide, by, mark=mark)

    def resend(
        self,
        task: Task,
        correct: Callable[[], Sequence[RecordWrite]],
        mark: RequestMark | None,
        *,
        by: Authority,
    ) -> Task:
        """Send a delivery that has ended unsent once more, once for each mark, and write what `correct` returns.

        Of several at once, one does both. The caller has checked that it may. Raises NotAllowed, or what `correct`
        raises.
        """

        def decide(task: Task, now: datetime) -> Commit:
            if task.status is TaskStatus.COMPLETED:
                raise NotAllowed("send again", "sent", "The other side has taken it.")
            if task.history and now - task.history[-1].at < _BETWEEN_RESENDS:
                raise NotAllowed("send again", "just sent again", "Try it again in a minute.")
            decided = self._decide_retry(None, None, OWN_CODE, task, now)
            records = correct()
            if task.delivery is not None:
                self._child_tasks.note_undelivered(task, task.delivery, is_over=True)
            return decided.having(records=records)

        own = replace(OWN_CODE, sender=by.actor, is_valid=by.is_valid)
        return self.start(task.id, Action.RETRIED, decide, own, mark=mark)

    def _decide_retry(
        self, execution_id: str | None, from_step: int | None, by: Authority, task: Task, now: datetime
    ) -> Commit:
        engine = self._engine
        child_tasks = self._child_tasks
        chosen_id = execution_id or retry_execution.last_finished_execution_id(task)
        execution = engine.store.load_execution(task.id, chosen_id)
        if execution is None and (run := task.find_run(chosen_id)) is not None:
            raise retry_execution.open_run_error(run)
        if execution is None:
            raise NotFound("execution", chosen_id)

        loaded = engine.archive().load_execution(execution)
        kept = loaded.model_copy(
            update={"steps": tuple(retry_execution.keep_before(loaded.steps, from_step))},
        )
        cancelled = child_tasks.list_cancelled_calls(kept.steps)
        retried = child_tasks.list_retried_calls(kept)
        transition = retry_execution.retry(task, loaded, now, cancelled, retried, from_step=from_step)
        if loaded.steps_reference is not None:  # without them, completed steps would run again
            raise retry_execution.missing_steps_error(loaded.steps_reference)
        if not transition.executions:
            return transition

        if from_step is not None:
            retry_execution.require_step(loaded, from_step)
        answered = self._find_answered_calls(kept, retried)
        if from_step is not None or answered:
            self._require_start(task, by)
            self._require_start_of(transition.task, chosen_id, by)
            # Once calls are changed, it must not be refused.
            engine.quotas().check_revival(task, transition.task, by)

        if from_step is not None:
            self._cancel_forgotten_calls(loaded, from_step)
        if answered:
            self._retry_answered_calls(answered.values())
            again = (*retried, *answered)
            transition = retry_execution.retry(task, loaded, now, cancelled, again, from_step=from_step)

        return engine.archive().restore_for_retry(transition, chosen_id)

    def _require_start_of(self, task: Task, execution_id: str, by: Authority) -> None:
        run = task.find_run(execution_id)
        if run is not None:
            self._require_start(task.as_begun(run), by)

    def _find_answered_calls(
        self,
        execution: Execution,
        retried: Collection[int] = (),
    ) -> dict[int, Execution]:
        """Return the records of the failed calls of an execution that have accepted an event, by number.

        Such a call is retried, not made again: it would ask for what was answered. So is one of whose failure
        its caller was not told before its own end, if the call has not taken the event.
        """
        if execution.failure_cause is None:
            failed = set()
        else:
            failed = {*execution.failure_cause.steps} - {*retried}
        found = {
            each.number: self._find_answered(each.child, is_noticed=each.number in failed)
            for each in execution.steps
            if each.child and (each.number in failed or _was_not_told(each, execution))
        }
        return {number: record for number, record in found.items() if record is not None}

    def _find_answered(self, call: str, *, is_noticed: bool) -> Execution | None:
        """Return the record of a failed call that accepted an event, or failed by such a call below it."""
        stored = self._engine.store.load(call)
        if stored is None:
            ended = None
        else:
            ended = stored.task.outcome_execution_id
        if ended is None:
            record = None
        else:
            record = self._engine.store.load_execution(call, ended)
        if stored is None or stored.task.runs or stored.task.status not in retry_execution.RETRYABLE_STATUSES:
            return None
        if record is None or record.status is ExecutionStatus.SUCCEEDED:
            return None
        record = self._engine.archive().load_execution(record)
        has_taken = is_noticed and any(each.kind is StepKind.EVENT and each.sender for each in record.steps)
        if record.events or has_taken or self._find_answered_calls(record):
            return record
        return None

    def _retry_answered_calls(self, records: Iterable[Execution]) -> None:
        """Retry calls before their caller's retry commits: if that fails, they run, and nobody reads them yet.

        Raises QuotaExceeded if the owner of one has no room for it.
        """
        for record in records:
            stored = self._engine.store.load(record.task_id)
            quota = None
            if stored and stored.task.is_for_user:
                quota = self._engine.quotas().check(record.owner)
            if quota is not None and quota.refusal is not None:
                raise quota.refusal
            self.retry(record.task_id, record.id, by=OWN_CODE)

    def _cancel_forgotten_calls(self, execution: Execution, from_step: int) -> None:
        """Cancel the calls under way that a retry from a step is about to forget.

        This comes before the commit of the retry, once all its checks have passed, as with the losers of a
        race: after it, a crash would leave calls that nobody awaits. If the commit fails, the execution has
        ended without success as before, and a retry makes again what it still needs of these calls.
        """
        for step in execution.steps:
            if step.number >= from_step and step.kind is StepKind.CALL and step.child is not None:
                self._child_tasks.cancel_call(step.child, "Its caller was retried from an earlier step.")

    def start(
        self,
        task_id: str,
        action: Action,
        decide: Decide,
        by: Authority,
        reason: str | None = None,
        mark: RequestMark | None = None,
    ) -> Task:
        """Change a task so that it runs, once for a mark.

        A user may start neither it, nor an execution that began before an edit, unless `require_user_start`
        allows both. Raises Forbidden, or QuotaExceeded for a task that has ended.
        """

        def decide_allowed(task: Task, now: datetime) -> Commit:
            started = decide(task, now)
            if started.task is not task and not lifecycle.is_only_marked(task, started.task):
                self._require_start(task, by)
                for run in started.task.runs if started.task.earlier_definitions else ():
                    if not task.is_active or task.find_run(run.execution_id) is None:
                        self._require_start(started.task.as_begun(run), by)
            return started

        return self._act(task_id, action, decide_allowed, by, reason, mark)

    def _require_start(self, task: Task, by: Authority) -> None:
        if by.is_user:
            require_user_start(task, self._engine.registry)
