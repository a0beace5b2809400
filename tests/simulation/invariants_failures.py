"""The invariants of what the owner of a task is told about its failures.

N1  Each failure that begins a row is told in the commit that records it, and each one if the task says so. A row is
    told once, until it has ended or somebody has set the task going again.
N2  A row that was told is ended by one message, in the commit of the success after which the task no longer fails.
N3  Nothing else is told: no call, no delivery, and no task that tells never.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.simulation.invariants_runs import fail

from cloudsched import Execution, Task
from cloudsched.domain.documents.delivery_channels import NOT_DELIVERED
from cloudsched.domain.documents.execution import ExecutionStatus, Message
from cloudsched.domain.documents.task import TaskStatus

_FAILED = {ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT, ExecutionStatus.EXPIRED}


class FailureInvariants:
    """Watches the commits of a world, and raises as soon as a rule does not hold."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, object], int] = {}
        """How many failures were told of each task since the end of the last row that was told."""

    def on_commit(
        self, before: Task | None, after: Task, executions: Sequence[Execution], messages: Sequence[Message]
    ) -> None:
        if before is None:
            return
        key = after.id, after.created_at
        # Others are recorded again, to say what became of their deliveries.
        executions = [each for each in executions if not (each.message or "").startswith(NOT_DELIVERED)]
        failed = {each.id for each in executions if _is_failure(after, each)}
        told = {each.execution_id for each in messages if each.id == f"{after.id}-{each.execution_id}-0"}
        ends = [each for each in messages if each.title.startswith("Works again: ")]
        if told - failed:
            fail(f"N3: {after.id} tells of {told - failed}, which have not failed")
        is_mute = after.tell_failures == "NEVER" or after.parent is not None or after.deleted_at is not None
        if is_mute or after.status is TaskStatus.CANCELLED:
            if told:
                fail(f"N3: {after.id} tells of {told}")
            failed = set()
        if after.tell_failures == "EACH" and told != failed:
            fail(f"N1: {after.id} tells of {told}, of {failed}")
        is_new_row = before.failing_since is None and after.failing_since is not None
        has_paused = before.status is TaskStatus.ACTIVE and after.status is TaskStatus.PAUSED
        is_due = bool(failed) and (not self._told.get(key) or is_new_row)
        if is_due and not told:
            fail(f"N1: {after.id} does not tell of {failed}")
        if after.tell_failures == "FIRST" and (len(told) > 1 or (told and not is_due and not has_paused)):
            fail(f"N1: {after.id} tells of {told} again")
        has_succeeded = any(each.status is ExecutionStatus.SUCCEEDED for each in executions)
        is_end = has_succeeded and after.failing_since is None
        expected = int(is_end and bool(self._told.get(key)) and after.tell_failures != "NEVER")
        if len(ends) != expected:
            fail(f"N2: {after.id} says {len(ends)} times that it works again, and was to {expected} times")
        self._told[key] = len(told) if is_end else self._told.get(key, 0) + len(told)


def _is_failure(task: Task, record: Execution) -> bool:
    is_missed = record.status is ExecutionStatus.SKIPPED and task.status is TaskStatus.EXPIRED
    return record.status in _FAILED or (is_missed and not record.is_left_out)
