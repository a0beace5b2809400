"""E1: all attempts of an execution run what it began with, whatever its task is edited to meanwhile.

That is: the same handler with the same payload, defined by the same author; and its record names that handler. An
execution begins with the commit that claims its first attempt, and a retry by hand does not begin it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

from cloudsched import Context, Execution, Task


class _Beginning(NamedTuple):
    """What an execution began to run, by the task that claimed it."""

    handler: str
    payload: dict[str, Any]
    defined_by: object


class BindingInvariants:
    """Watches what executions begin with, and what their handlers get."""

    def __init__(self, fail: Callable[[str], NoReturn]) -> None:
        self._fail = fail
        self._began: dict[tuple[str, datetime, str], _Beginning] = {}

    def on_handler_start(self, ctx: Context) -> None:
        """Check what a handler gets in one of its attempts."""
        key = (ctx.task.id, ctx.task.created_at, ctx.execution_id)
        found, began = _Beginning(ctx.task.handler, ctx.task.payload, ctx.task.defined_by), self._began.get(key)
        if began is not None and found != began:
            self._fail(f"E1: {key} began with {began}, and attempt {ctx.attempt} has {found}")

    def on_commit(self, before: Task | None, after: Task, executions: Sequence[Execution]) -> None:
        """Note what begins, and check the records of what has."""
        known = {} if before is None else {run.execution_id: run for run in before.runs}
        for run in after.runs:
            key, earlier = (after.id, after.created_at, run.execution_id), known.get(run.execution_id)
            if run.started_at is None and run.payload is None and run.definition is None:
                self._began.pop(key, None)  # released before it did anything: it begins with its next claim
            elif earlier is None or not earlier.has_begun:
                payload = after.payload if run.payload is None else run.payload
                self._began.setdefault(key, _Beginning(after.handler, payload, after.defined_by))
        for each in executions:
            began = self._began.get((after.id, after.created_at, each.id))
            if began is not None and each.started_at is not None and each.handler not in {None, began.handler}:
                self._fail(f"E1: {each.id} of {after.id} began with {began}, and its record says {each.handler}")
