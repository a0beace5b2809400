"""What happened in an execution, for people: its progress, its steps, and the traceback of its error."""

from __future__ import annotations

import json
from datetime import UTC
from typing import TYPE_CHECKING

from rich.text import Text

from cloudsched.domain.closed_sets import complete_table
from cloudsched.domain.documents.execution import FAILURE_STATUSES, ExecutionStatus
from cloudsched.domain.documents.journal import StepKind, StepStatus
from cloudsched.local.untrusted_text import to_printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.journal import StepRecord


_STEP_STYLES = complete_table(
    StepStatus,
    {
        StepStatus.WAITING: "cyan",
        StepStatus.SUCCEEDED: "green",
        StepStatus.FAILED: "red",
        StepStatus.TIMED_OUT: "",
    },
)
_MAX_RESULT_LENGTH = 60
ERROR_STATUSES = FAILURE_STATUSES | {ExecutionStatus.RETRYING}
"""The statuses of an execution that an error explains."""


def detail_lines(execution: Execution) -> Iterator[Text]:
    """Yield a line for each progress note and each step, then those of the traceback."""
    for note in execution.progress:
        yield Text.assemble((f"{_clock(note.at)}  ", "dim"), to_printable(note.text))
    for step in execution.steps:
        yield _step_line(step)
    error = execution.error
    if execution.status in ERROR_STATUSES and error is not None and error.traceback:
        yield from (Text(to_printable(line), "dim red") for line in error.traceback.splitlines())


def _step_line(step: StepRecord) -> Text:
    name = f" {step.name}" if step.name else ""
    end = ""
    if step.error is not None:
        end = f"{step.error.type}: {step.error.message}".removeprefix(": ")
    elif step.kind is StepKind.RACE:
        end = f"won by {step.result['winner']}" if "winner" in step.result else ""
    elif step.status is StepStatus.SUCCEEDED and step.result is not None:
        text = json.dumps(step.result, ensure_ascii=False)
        end = text if len(text) <= _MAX_RESULT_LENGTH else text[:_MAX_RESULT_LENGTH] + " …"
    elif step.status is StepStatus.WAITING and step.due_at is not None and step.kind is not StepKind.CALL:
        end = f"until {step.due_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    attempts = f" (attempt {step.attempts})" if step.attempts > 1 else ""
    return Text.assemble(
        (f"{_clock(step.started_at)}  ", "dim"),
        f"{step.number}. {step.kind.value.lower()}{to_printable(name)}{attempts}  ",
        (step.status.value, _STEP_STYLES[step.status]),
        f"  {to_printable(end)}" if end else "",
    )


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
