"""The tasks that a caller may see, and the verbs that are allowed on them.

It hides tasks that a caller may not see. The answer for a hidden task is that for a task that does not
exist, and takes as long. Parsing a task costs about 50 µs. So when nothing was found, or a task that this
process knew already, a stand-in of a typical task's size is parsed. A task with a large payload still
takes longer than the stand-in does.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from cloudsched.domain.documents.authority import EventSender, Requesters
from cloudsched.domain.documents.document import STORED_CONTEXT
from cloudsched.domain.documents.execution import Execution, ExecutionStatus
from cloudsched.domain.documents.script import SCRIPT_HANDLER
from cloudsched.domain.documents.task import Task
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.manual_verbs import find_execution_verbs, find_task_verbs
from cloudsched.domain.transitions.task_draft import edit_draft
from cloudsched.engine.handlers.user_access import require_user_edit, require_user_start
from cloudsched.engine.storage.known_tasks import count_parsed
from cloudsched.errors import Forbidden, InvalidInput, NotAllowed, NotFound
from cloudsched.web.auth.roles import Caller, Right, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cloudsched.app import App
    from cloudsched.engine.queries.execution_search import FoundExecution


class Visibility:
    """The tasks that one request of a caller may use, each after a `precondition` such as `If-Match`."""

    def __init__(
        self,
        caller: Caller,
        precondition: Callable[[Task], None] | None = None,
        *,
        is_change: bool = False,
    ) -> None:
        self._caller = caller
        self._precondition = precondition
        self._is_change = is_change
        self._is_repeated: Callable[[Task], bool] = lambda _: False
        self._parsed_before = count_parsed()

    def allow_repetition(self, is_repeated: Callable[[Task], bool]) -> None:
        """Allow a task that this request has already changed, even if the precondition no longer holds."""
        self._is_repeated = is_repeated

    def check_task(self, task: Task) -> None:
        """Check that the request may use a task. Raises NotFound, Forbidden, or the precondition's error."""
        if not self._caller.can_see(task.owner):
            raise NotFound("task", task.id)
        if task.parent and self._is_change and is_fixed_for(self._caller, task):
            raise Forbidden(f"This task is a call of task {task.parent.task_id}, and only that may change it.")
        if self._precondition is not None and not self._is_repeated(task):
            self._precondition(task)

    def check_claim(self, task: Task, queue: str | None) -> None:
        """Check that the request may use a run of a queue. Raises NotFound."""
        if not (self._caller.can_see(task.owner) and self._caller.can_work_on(queue)):
            raise NotFound("task", task.id)

    def equalize_time(self) -> None:
        """Spend the time that parsing a hidden task takes, after NotFound, unless a task was parsed."""
        is_restricted = self._caller.visible_owner is not None or self._caller.queues or self._precondition
        if is_restricted and count_parsed() == self._parsed_before:
            Task.model_validate_json(_stand_in(), context=STORED_CONTEXT)  # as a store reads a typical task


def is_fixed_for(caller: Caller, task: Task) -> bool:
    """Return whether a task is another one's call, which a user may read and not change."""
    return task.parent is not None and caller.role is Role.USER


@lru_cache(maxsize=1)
def _stand_in() -> str:
    at = datetime(2027, 1, 1, 9, tzinfo=UTC)
    task = Task(
        id="0" * 32,
        owner="0" * 28,
        title="Stand-in",
        handler="handler",
        payload={"text": "0" * 40},
        schedule=Schedule.once(at),
        is_one_time=True,
        timezone="UTC",
        created_at=at,
        updated_at=at,
        status_changed_at=at,
        next_execution_time=at,
        wake_at=at,
    )
    return task.model_dump_json(by_alias=True, exclude_none=True)


class AllowedVerbs:
    """Decides for one request what its caller may do."""

    def __init__(self, app: App, caller: Caller) -> None:
        self._app = app
        self._caller = caller

    def of_task(self, task: Task) -> tuple[Verb, ...]:
        """Return the verbs by which the caller may change a task.

        To edit it means here to change something that leaves its handler and payload as they are, such as
        its title.
        """
        if not self._may_change(task):
            return ()
        found = find_task_verbs(task, self._read_clock, self._sender)
        if not self._may_edit(task):
            found = [verb for verb in found if not verb.traits.edits]
        return self._without_starts(task, found)

    def of_loaded_execution(self, task: Task, execution: Execution) -> tuple[Verb, ...]:
        """Return the caller's verbs for an execution. If its steps could not be loaded, it cannot be retried."""
        found = self.of_execution(task, execution)
        if execution.steps_reference is None:
            return found
        return tuple(verb for verb in found if verb is not Verb.RETRY)

    def of_execution(self, task: Task, execution: Execution) -> tuple[Verb, ...]:
        """Return the caller's verbs for one of a task's executions."""
        if not self._may_change(task):
            return ()
        found = find_execution_verbs(task, execution, self._read_clock, self._sender)
        return self._without_starts(task, found)

    def of_found_execution(self, found: FoundExecution) -> tuple[Verb, ...] | None:
        """Return the caller's verbs for an execution in a list across tasks. None if only its task can tell."""
        if found.task is not None:
            return self.of_execution(found.task, found.execution)
        has_succeeded = found.execution.status is ExecutionStatus.SUCCEEDED
        if has_succeeded or not self._caller.has_right(Right.WRITE):
            return ()
        return None

    def _may_change(self, task: Task) -> bool:
        return self._caller.has_right(Right.WRITE) and not is_fixed_for(self._caller, task)

    def _without_starts(self, task: Task, found: Iterable[Verb]) -> tuple[Verb, ...]:
        """Return the verbs without those by which a user may not start this task."""
        found = tuple(found)
        if self._caller.requesters is not Requesters.USERS:
            return found
        try:
            require_user_start(task, self._app.container.engine.registry)
        except (Forbidden, NotAllowed):
            return tuple(verb for verb in found if not verb.traits.starts)
        return found

    def _may_edit(self, task: Task) -> bool:
        registry = self._app.container.engine.registry
        try:
            if self._caller.requesters is Requesters.USERS:
                require_user_edit(task, registry)
            handler = registry.find(task.handler)
            if handler is not None:
                if handler.check is not None and task.handler != SCRIPT_HANDLER:
                    handler.check(edit_draft(task, {}), self._caller.requesters)
            elif task.workers is None:
                return False
        except InvalidInput:
            return False
        return True

    @property
    def _sender(self) -> EventSender:
        sender = self._caller.sender
        assert sender is not None  # noqa: S101 - whoever may change tasks is one
        return sender

    def _read_clock(self) -> datetime:
        return self._now

    @cached_property
    def _now(self) -> datetime:
        return self._app.container.clock.now()
