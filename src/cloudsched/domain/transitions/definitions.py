"""Bind an execution to the definition that it began with: handler, payload, children or script, and author.

The definition of a run is stored only once an edit changes it: in its task, once for all runs that began
with it. A record that may be retried by hand has a copy of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.children import CHILDREN_HANDLER
from cloudsched.domain.documents.execution import DEFINED, Definition, Execution, Run
from cloudsched.domain.documents.script import SCRIPT_HANDLER

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task


def bind_open_runs(task: Task, changed: Task) -> Task:
    """Return an edited task whose begun runs go on with the task's earlier definition."""
    if not task.runs:
        return changed
    bound = [run for run in task.runs if run.has_begun and run.definition is None and _differ(task, changed, run)]
    if not bound:
        return changed
    has_own = all(run.payload is not None for run in bound)
    earlier = _define(task, number=_next_number(task), has_payload=not has_own)
    ids = {run.execution_id for run in bound}
    runs = tuple(
        run.model_copy(update={"definition": earlier.number}) if run.execution_id in ids else run
        for run in changed.runs
    )
    return _with_earlier(changed, earlier).model_copy(update={"runs": runs})


def describe_bound_runs(task: Task) -> str:
    """Return a sentence about open runs that keep their definition from before an edit, or an empty text."""
    count = sum(run.definition is not None for run in task.runs)
    if not count:
        return ""
    runs = "1 open run goes on with what it" if count == 1 else f"{count} open runs go on with what they"
    return f"{runs} began with before an edit."


def drop_unused(task: Task) -> tuple[Definition, ...] | None:
    """Return the earlier definitions that an open run still needs, or None if none does."""
    used = {run.definition for run in task.runs}
    return tuple(each for each in task.earlier_definitions or () if each.number in used) or None


def describe_record(task: Task, run: Run) -> Definition:
    """Return the definition that a run's record keeps for a retry by hand.

    The run's own payload is in the record.
    """
    ran = task.as_begun(run)
    return _define(ran, has_payload=run.payload is None and ran.payload == task.payload)


def restore_definition(task: Task, execution: Execution) -> tuple[Task, int | None]:
    """Return the task with an ended execution's definition, and its number, or None if it is today's.

    Children and scripts are their author's own, who may have mended them. So a retry runs those of today,
    replayed against the recorded steps.
    """
    began = execution.began_with
    if began is None or (began.handler == task.handler and task.handler in {CHILDREN_HANDLER, SCRIPT_HANDLER}):
        return task, None
    has_payload = execution.payload is None
    if began.is_same(_define(task, has_payload=has_payload)):
        return task, None
    for each in task.earlier_definitions or ():
        if began.is_same(each if has_payload else each.model_copy(update={"payload": {}})):
            return task, each.number
    restored = began.model_copy(update={"number": _next_number(task)})
    return _with_earlier(task, restored), restored.number


def _with_earlier(task: Task, earlier: Definition) -> Task:
    return task.model_copy(update={"earlier_definitions": (*(task.earlier_definitions or ()), earlier)})


def _define(task: Task, number: int = 0, *, has_payload: bool = True) -> Definition:
    """Return a task's definition. Without `has_payload` its payload is empty: each run has its own."""
    values = {name: getattr(task, name) for name in DEFINED}
    if not has_payload:
        values["payload"] = {}
    return Definition.build(number=number, **values)


def _differ(task: Task, changed: Task, run: Run) -> bool:
    before, after = (_define(each, has_payload=run.payload is None) for each in (task, changed))
    return not before.is_same(after)


def _next_number(task: Task) -> int:
    return 1 + max((each.number for each in task.earlier_definitions or ()), default=0)
