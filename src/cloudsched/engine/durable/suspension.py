"""Suspends a durable handler where it has to wait, and declares what a durable run needs from the engine.

Suspending is control flow, and so is the end of a process by a signal: `is_handler_failure` tells these from
the failures of user code.
"""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from opcode import opmap
from typing import TYPE_CHECKING, Any, Final, Protocol

from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.documents.json_limits import exception_text
from cloudsched.domain.raised_errors import get_members, get_traceback
from cloudsched.errors import Unavailable, WorkflowError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Parent, Task
    from cloudsched.domain.documents.usage import Amounts
    from cloudsched.domain.transitions.commit import Commit
    from cloudsched.domain.transitions.outcome import Outcome
    from cloudsched.engine.durable.results import CallOutcome
    from cloudsched.engine.ports.blobs import Blobs
    from cloudsched.engine.ports.clock import Clock

OUTAGE_PAUSE: Final = timedelta(seconds=5)
"""The suspension of a handler when the store or queue is unavailable: an outage is not the handler's
failure."""


class Suspended(ControlFlow):
    """Unwinds a durable handler that has to wait, or that continued after an `error` that ends the execution.

    It is control flow, not an error: do not catch it.
    """

    def __init__(self, outcome: Outcome, error: Exception | None = None) -> None:
        self.outcome = outcome
        self.error = error
        super().__init__(
            f"The handler is suspended here ({getattr(outcome, 'reason', '')}), and is replayed when it can continue. "
            "If you see this, your code caught BaseException: catch Exception instead, and let this propagate."
        )


def is_busy(error: BaseException) -> bool:
    """Return whether a partner was not asked, because as many calls to it as may be are under way."""
    return issubclass(type(error), Unavailable) and bool(getattr(error, "is_busy", False))


def is_handler_failure(error: BaseException) -> bool:
    """Return whether what user code raised is a failure of that code. A group is if all of its members are.

    A handler, step or hook does not own the process, event loop or generator that it runs in. So it fails
    with whatever it raises itself, be it `SystemExit`, `CancelledError`, `KeyboardInterrupt` or a class of
    its own. `ControlFlow` propagates, and so does what a signal raises, such as that of Ctrl-C.
    """
    waiting = [error]
    while waiting:
        each = waiting.pop()
        waiting += get_members(each)
        is_over = issubclass(type(each), Exception | BaseExceptionGroup)
        if not is_over and (issubclass(type(each), ControlFlow) or _is_raised_by_signal(each)):
            return False
    return True


_ENDING: Final = [
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGABRT") if hasattr(signal, name)
]
"""The signals by which a process is ended from outside."""


def _is_raised_by_signal(error: BaseException) -> bool:
    """Return whether a signal that ends the process raised this in the main thread, between instructions.

    A signal's handler in Python has a frame of its own. Python's default for Ctrl-C has none: it raises
    `KeyboardInterrupt` at an instruction that is no `raise`. `asyncio.run` raises it again, in place of its
    own loop.
    """
    traces: list[TracebackType] = []
    trace = get_traceback(error)
    while trace is not None:
        traces.append(trace)
        trace = trace.tb_next
    if not traces or threading.current_thread() is not threading.main_thread():
        return False
    handlers = {getattr(signal.getsignal(each), "__code__", None) for each in _ENDING}
    if any(each.tb_frame.f_code in handlers for each in traces):
        return True
    frame = traces[-1].tb_frame
    place = traces[-1].tb_lasti
    is_raised = frame.f_code.co_code[place : place + 1] == bytes([opmap["RAISE_VARARGS"]])
    is_of_asyncio = frame.f_globals.get("__name__") == "asyncio.runners"
    return issubclass(type(error), KeyboardInterrupt) and (is_of_asyncio or not is_raised)


def explain_mistake(error: BaseException, made: tuple[object, str] | None = None) -> WorkflowError | None:
    """Return what user code should have written instead of raising this, if it can only be a mistake.

    `made` is an outcome that it has made, and where.
    """
    said = ""
    if issubclass(type(error), SystemExit):
        status = exception_text(error)
        status = repr(status) if status.strip("-0123456789") else status
        said = (
            f"sys.exit({status}) would end the process, which a handler shares with others. Return a "
            "result, Fail(…) or Retry(…), or raise an exception."
        )
    elif issubclass(type(error), TypeError) and "must derive from BaseException" in exception_text(error):
        said = "A handler returns an outcome, and does not raise it. Write"
        said += ": return Retry(…)" if made is None else f", at {made[1]}: return {made[0]}"
    if not said:
        return None
    mistake = WorkflowError(said)
    mistake.__cause__ = error
    return mistake


@dataclass(frozen=True, slots=True)
class SuspendPolicy:
    """The conditions under which a handler is suspended although it could continue."""

    until: datetime | None = None
    """From this instant on, the handler is suspended at its next durable point: its function's time is nearly
    over."""
    every_step: bool = False
    """Suspend at every durable point, to test whether the handler is deterministic in a replay."""
    call_arguments: dict[tuple[str, str, datetime | None, int], str] = field(default_factory=dict)
    """The arguments of calls in such a test, by task id, execution id, start of the run (a manual retry
    begins another journal) and entry number: the journal has no copy."""


class JournaledRun(Protocol):
    """The claimed run that a journal belongs to. `engine.execution.attempt` implements it."""

    @property
    def task(self) -> Task:
        """The task as it was last read or written."""

    @property
    def begun_task(self) -> Task:
        """The task as it was claimed, with what the run began with."""

    @property
    def run(self) -> Run:
        """The run as it was claimed."""

    def append_journal(
        self,
        entries: Sequence[JournalEntry],
        calls_made: int,
        end_wait: Callable[[Commit], Commit] | None = None,
    ) -> Task | None:
        """Commit entries, and the end of a wait with them. Return the task, or None if the lease was lost."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of the engine that a durable run needs."""

    attempt: JournaledRun
    clock: Clock
    function: Callable[[str], Callable[..., Any] | None]
    """The function of a handler, or None where it is not registered in this process."""
    tells_errors: Callable[[str], bool]
    """Return whether owners are told the errors of the handler of that name."""
    name_of: Callable[[object], str]
    """The name of a handler that is given by its name or as its function."""
    blobs: Blobs
    chance: random.Random
    load: Callable[[], Sequence[JournalEntry]]
    make_call: Callable[[Task], bool]
    cancel_call: Callable[[str, str], None]
    """Cancel the task of a call for a reason, and its descendants, unless it has ended or does not exist."""
    load_call_outcome: Callable[[str, str], CallOutcome | None]
    """Return the outcome of the call of a handler, by its task's id, or None if it is in progress."""
    draft_call: Callable[[str, Any, str, dict[str, Any], Parent], Task]
    suspend_policy: SuspendPolicy
    find_excess: Callable[[Amounts], str | None] = lambda _recorded: None
    """Return why the task may use no more, of what the run's entries have used, or None. It reads nothing."""
