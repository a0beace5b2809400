"""What one caller may do with a task or an execution, decided as the API would decide it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.script import SCRIPT_HANDLER
from cloudsched.domain.transitions.allowed_verbs import STARTING_VERBS, Verb, find_execution_verbs, find_task_verbs
from cloudsched.domain.transitions.drafts import edit_draft
from cloudsched.engine.handlers.user_access import require_user_edit, require_user_start
from cloudsched.errors import Forbidden, InvalidInput, NotAllowed
from cloudsched.web.api.visibility import is_fixed_for
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cloudsched.app import App
    from cloudsched.domain.documents.authority import EventSender
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.tasks.execution_search import FoundExecution
    from cloudsched.web.auth.roles import Caller


class AllowedVerbs:
    """Decides for one request what its caller may do."""

    def __init__(self, app: App, caller: Caller) -> None:
        self._app = app
        self._caller = caller

    def of_task(self, task: Task) -> tuple[Verb, ...]:
        """Return what the caller may do with a task, so that it changes.

        To edit it means here to change something that leaves its handler and payload as they are, such as its title.
        """
        if not self._may_change(task):
            return ()
        found = find_task_verbs(task, self._read_clock, self._sender)
        if Verb.EDIT in found and not self._may_edit(task):
            found.remove(Verb.EDIT)
        return self._without_starts(task, found)

    def of_loaded_execution(self, task: Task, execution: Execution) -> tuple[Verb, ...]:
        """Return what the caller may do with an execution whose steps were loaded: none is retried if they are gone."""
        found = self.of_execution(task, execution)
        return found if execution.steps_reference is None else tuple(verb for verb in found if verb is not Verb.RETRY)

    def of_execution(self, task: Task, execution: Execution) -> tuple[Verb, ...]:
        """Return what the caller may do with one of a task's executions."""
        if not self._may_change(task):
            return ()
        return self._without_starts(task, find_execution_verbs(task, execution, self._read_clock, self._sender))

    def of_found_execution(self, found: FoundExecution) -> tuple[Verb, ...] | None:
        """Return what the caller may do with an execution in a list across tasks; None if only its task would tell."""
        if found.task is not None:
            return self.of_execution(found.task, found.execution)
        may_retry = self._caller.has_right(Right.WRITE) and found.execution.status is not ExecutionStatus.SUCCEEDED
        return None if may_retry else ()

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
            return tuple(verb for verb in found if verb not in STARTING_VERBS)
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
            elif task.pull is None:
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
