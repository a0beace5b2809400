"""The record of an attempt, as context and executor use it: nothing, or a journal, which is replayed.

And its calls.
"""

# ruff: noqa: D102 - `DurableRun` describes each method of `Replay`

from __future__ import annotations

import hashlib
import threading
import uuid
from functools import cached_property, update_wrapper
from random import Random
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    NamedTuple,
    NoReturn,
    ParamSpec,
    TypeVar,
    cast,
    overload,
)

from cloudsched.domain.handler_code import running_handler
from cloudsched.domain.transitions.outcome import Done
from cloudsched.engine.durable.step_attempt import (
    HandlerThread,
    ReportedUsage,
    refuse_change,
    require_not_timed_out,
    sum_entries,
)
from cloudsched.errors import CallFailed, Unavailable, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.journal import FailureCause, JournalEntry, StepKind
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.outcome import Outcome
    from cloudsched.engine.durable.journal_cursor import JournalCursor
    from cloudsched.engine.durable.suspension import Surroundings, Suspended
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.procedure import Procedure

P = ParamSpec("P")
T = TypeVar("T")


class Recorded(NamedTuple):
    """The part of a journal that goes into the report of an attempt."""

    usage: ReportedUsage
    """The total usage of the recorded steps."""
    entries: tuple[JournalEntry, ...]
    """The entries that are not committed yet."""
    calls_made: int
    """The entry number up to which all calls are known to have tasks."""
    journal: tuple[JournalEntry, ...] | None
    """The complete journal, or None if it was not loaded, or if it is uncertain what was committed."""
    called: ReportedUsage = ReportedUsage()
    """The total usage of the calls that have ended."""
    is_replayed: bool = False
    """True if later attempts repeat all that this one has done: the handler is durable."""


NOTHING_RECORDED: Final = Recorded(ReportedUsage(), (), 0, None)


class DurableRun:
    """One attempt of a handler that records nothing. `Replay` is one with a journal.

    That is every handler in a worker that reaches its tasks only through the API, and one that does not get
    the context: a journal is written in the store, under the lease. Such a handler still has the time, UUIDs
    and random numbers. A request that would have to be recorded is refused.
    """

    def __init__(self, task: Task, execution_id: str, clock: Clock) -> None:
        self.task = task
        self.execution_id = execution_id
        self._clock = clock
        self._uuids = 0
        self.made: tuple[object, str] | None = None
        """The first outcome that the handler's code has made, and where. Any other counts before a Done."""
        self.ends_process: bool = False
        """True if the handler's code has sent this process a signal to end."""

    @cached_property
    def _seed(self) -> bytes:
        return hashlib.sha256(f"{self.task.id} {self.execution_id}".encode()).digest()

    @cached_property
    def _random(self) -> Random:
        return Random(self._seed)  # noqa: S311 - it must be repeatable

    # ── For the handler's context
    # ────────────────────────────────────────────────────────────────────────────────

    def perform(
        self,
        what: str,
        operation: Callable[Concatenate[JournalCursor, P], T],  # noqa: ARG002 - there is no cursor
        /,
        *args: P.args,  # noqa: ARG002 - the same
        **kwargs: P.kwargs,  # noqa: ARG002 - the same
    ) -> T:
        """Run a recorded operation and return its result. `what` is the request as the handler writes it.

        An outage suspends the handler (`Suspended`) instead of raising `Unavailable` in it.
        """
        raise WorkflowError(
            f"{what} has to be recorded in the store, and this worker reaches its tasks through the API. Run a worker "
            "of this queue at the store: `cloudsched worker` without --url and CLOUDSCHED_URL, with the store's own "
            "settings."
        )

    def perform_procedure(
        self,
        what: str,
        operation: Callable[Concatenate[JournalCursor, P], Procedure[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Procedure[T]:
        """Return the procedure of an operation that calls functions of the user."""
        return self.perform(what, operation, *args, **kwargs)

    def now(self) -> datetime:
        """Return the current time, the same in every replay."""
        return self._clock.now()

    def uuid(self) -> uuid.UUID:
        """Return a new UUID. Every attempt and replay gets the same ones in the same order."""
        self._uuids += 1
        return uuid.uuid5(uuid.UUID(bytes=self._seed[:16]), str(self._uuids))

    @property
    def random(self) -> Random:
        """A random generator with the same seed in every replay."""
        return self._random

    @property
    def step_usage(self) -> ReportedUsage | None:
        """The usage that the running step has reported, or None outside of steps."""
        return None

    def note_change(self, call: str) -> None:
        """Note a change of the handler's code. Without a journal nothing is replayed. See `HandlerCode`."""

    def note_outcome(self, outcome: object, place: str) -> None:
        """Note an outcome that the handler's code has made. See `HandlerCode`."""
        if self.made is None or (isinstance(self.made[0], Done) and not isinstance(outcome, Done)):
            self.made = outcome, place

    def note_signal(self) -> None:
        """Note that the handler's code has sent this process a signal to end. See `HandlerCode`."""
        self.ends_process = True

    @property
    def is_replaying(self) -> bool:
        """Return whether the next entry was in the journal when this attempt started.

        Inside a step this is False.
        """
        return False

    def find_next(self) -> tuple[StepKind, str] | None:
        """Return the kind and the name of the next entry, if it was in the journal when this attempt started."""
        return None

    @property
    def lease_until(self) -> datetime | None:
        """The instant until which the last commit of journal entries renewed the lease."""
        return None

    # ── For the executor
    # ─────────────────────────────────────────────────────────────────────────────────────────

    def __enter__(self) -> None:
        """Run the handler's code in the block."""
        self._before = running_handler.set(self)

    def __exit__(self, *_error: object) -> None:
        running_handler.reset(self._before)

    def bind_thread(self) -> None:
        """Note this thread as the handler's, the only one that may request journal entries from now on."""

    def allow_event_loop(self, thread: int) -> None:
        """Allow the event loop's thread to request entries, too.

        Load the journal first, as loading would block the loop.
        """

    def check_complete(self) -> None:
        """Check that a handler that returned requested all recorded entries, and create its pending calls."""

    def make_calls(self) -> None:
        """Create the tasks of calls that were started before an exception left the handler."""

    def clock_now(self) -> datetime:
        """Return the current time without recording it."""
        return self._clock.now()

    def find_failure_cause(self, error: BaseException | None) -> FailureCause | None:  # noqa: ARG002 - nothing failed
        """Return the entries that made the handler fail. `error` is None if it returned a failure."""
        return None

    @property
    def suspension(self) -> Suspended | None:
        """The signal that suspended the handler."""
        return None

    recorded: Recorded = NOTHING_RECORDED
    """The journal's part of the report of an attempt."""


class Replay(DurableRun):
    """One attempt of a claimed execution, with its journal. `DurableRun` describes each method.

    The handler starts from the top in each attempt. Each operation returns its recorded result, or runs and
    is recorded. Where it has to wait for a result, `Suspended` unwinds it.
    """

    def __init__(
        self,
        task: Task,
        run: Run,
        clock: Clock,
        make_surroundings: Callable[[], Surroundings],
    ) -> None:
        super().__init__(task, run.execution_id, clock)
        self._run = run
        self._make_surroundings = make_surroundings
        self._thread = HandlerThread()
        self._opening = threading.Lock()
        self._opened: JournalCursor | None = None
        if run.steps:
            self._open()

    def _open(self) -> JournalCursor:
        """Return the position in the journal, created when the handler first requests an entry."""
        from cloudsched.engine.durable.journal_cursor import JournalCursor  # noqa: PLC0415 - few handlers are durable

        with self._opening:  # another thread may be doing the same, to be refused
            if self._opened is None:
                self._opened = JournalCursor(self._make_surroundings(), self._thread)
            return self._opened

    # ── For the handler's context
    # ────────────────────────────────────────────────────────────────────────────────

    def perform(
        self,
        what: str,  # noqa: ARG002 - the request is in its entry
        operation: Callable[Concatenate[JournalCursor, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        try:
            return operation(self._open(), *args, **kwargs)
        except Unavailable as error:
            self._open().suspend_for_outage(f"could not continue: {error}")

    def perform_procedure(
        self,
        what: str,  # noqa: ARG002 - the same
        operation: Callable[Concatenate[JournalCursor, P], Procedure[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Procedure[T]:
        try:
            return (yield from operation(self._open(), *args, **kwargs))
        except Unavailable as error:
            self._open().suspend_for_outage(f"could not continue: {error}")

    def now(self) -> datetime:
        from cloudsched.engine.durable.waits import record_now  # noqa: PLC0415 - the same

        return self.perform("ctx.now()", record_now)

    def uuid(self) -> uuid.UUID:
        """Return a new UUID, the same in every replay.

        Inside a step, whose result is recorded, it may be any UUID.
        """
        require_not_timed_out()
        if self.step_usage is not None:
            return uuid.uuid4()
        self._thread.require_own("ctx.uuid()")
        return super().uuid()

    @property
    def random(self) -> Random:
        """A random generator with the same seed in every replay.

        In a step, which is not replayed, it has no seed.
        """
        require_not_timed_out()
        if self.step_usage is not None:
            return Random()  # noqa: S311 - not used for security
        self._thread.require_own("ctx.random")
        return self._random

    @property
    def step_usage(self) -> ReportedUsage | None:
        if self._opened is None:
            return None
        return self._opened.step_usage

    def note_change(self, call: str) -> None:
        require_not_timed_out()
        if self.step_usage is not None:
            return
        if self._opened is not None and self._opened.is_durable:
            raise refuse_change(call)
        self._thread.change = self._thread.change or call

    @property
    def is_replaying(self) -> bool:
        cursor = self._opened
        return cursor is not None and not cursor.is_in_step and cursor.position < self._run.steps

    def find_next(self) -> tuple[StepKind, str] | None:
        cursor = self._opened
        if cursor is None or not self.is_replaying:
            return None
        entry = cursor.journal[cursor.position + 1]
        return entry.kind, entry.name

    @property
    def lease_until(self) -> datetime | None:
        if self._opened is None:
            return None
        return self._opened.lease_until

    # ── For the executor
    # ─────────────────────────────────────────────────────────────────────────────────────────

    def bind_thread(self) -> None:
        self._thread.own = threading.get_ident()

    def allow_event_loop(self, thread: int) -> None:
        self._thread.event_loop = thread
        if self._run.steps:
            self.perform("the journal", lambda cursor: cursor.journal)

    def check_complete(self) -> None:
        if self._opened is not None:
            self.perform("the handler's end", lambda cursor: cursor.finish())

    def make_calls(self) -> None:
        if self._opened is not None and self._opened.calls.tasks:
            self.perform("the handler's end", lambda cursor: cursor.make_all_calls())

    def find_failure_cause(self, error: BaseException | None) -> FailureCause | None:
        cursor = self._opened
        if cursor is None:
            return None
        return cursor.failures.cause_of(error, None if self.is_replaying else cursor.position)

    def __enter__(self) -> None:
        self.bind_thread()
        super().__enter__()

    def __exit__(self, *error: object) -> None:
        """Drop the errors that the handler's code raised, since they keep the handler's variables alive."""
        super().__exit__(*error)
        if self._opened is not None:
            self._opened.forget_errors()

    @property
    def suspension(self) -> Suspended | None:
        if self._opened is None:
            return None
        return self._opened.suspension

    @property
    def recorded(self) -> Recorded:  # type: ignore[override]  # it changes
        cursor = self._opened
        if cursor is None:
            return Recorded(NOTHING_RECORDED.usage, (), self._run.calls_made, ())
        entries = tuple((cursor.entries or {}).values())
        steps = sum_entries(entries)
        called = sum_entries(entries, is_of_calls=True)
        if cursor.is_durable:
            pending = tuple(cursor.pending.values())
        else:
            pending = ()
        return Recorded(steps, pending, cursor.calls.made, _find_whole(cursor), called, cursor.is_durable)


def _find_whole(cursor: JournalCursor) -> tuple[JournalEntry, ...] | None:
    if not cursor.is_complete:
        return None
    if not cursor.is_durable or cursor.entries is None:
        return None if cursor.run.steps else ()
    return tuple(cursor.entries[number] for number in sorted(cursor.entries))


class Misuse(AttributeError, TypeError):
    """Something that a handler takes for the value that it stands for. Trying again cannot help."""


class NotAValue:
    """Something that a handler might take for the value that it stands for.

    Using it as a value, as in ``if``, raises an error, so that a handler cannot go on with a wrong answer.
    """

    def describe_misuse(self) -> str:
        """Return the error message: why it is not a value, and what to write instead."""
        raise NotImplementedError

    def _refuse(self, *_: object) -> NoReturn:
        raise Misuse(self.describe_misuse())

    def __bool__(self) -> NoReturn:  # noqa: PLE0304 - it has none
        self._refuse()

    def __str__(self) -> NoReturn:  # noqa: PLE0307 - it has none
        self._refuse()

    def __format__(self, spec: str) -> NoReturn:
        self._refuse()

    def __eq__(self, other: object) -> bool:
        self._refuse()

    def __hash__(self) -> int:
        return object.__hash__(self)


for _name in [
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "lt",
    "le",
    "gt",
    "ge",
    "getitem",
    "iter",
    "contains",
    "len",
]:
    setattr(NotAValue, f"__{_name}__", NotAValue._refuse)  # noqa: SLF001 - its own


R_co = TypeVar("R_co", covariant=True)
X = TypeVar("X")


class _Uncalled(NotAValue):
    """A method of a call, which a handler may forget to call."""

    def __init__(self, call: NotAValue, method: Callable[..., Any]) -> None:
        self._method = method
        self._call = call

    def __call__(self) -> Any:  # noqa: ANN401 - whatever the method returns
        """Call the method."""
        return self._method(self._call)

    def __repr__(self) -> str:
        return f"<{self._method.__name__} of {self._call!r}, not called>"

    def describe_misuse(self) -> str:
        """Return the error message for using the method as what it returns."""
        return f"It is a method, and not what the method returns. Use call.{self._method.__name__}() to call it."


M = TypeVar("M", bound="Callable[..., Any]")


class _MethodOfCall:
    """A method of a call. Taken from a call, it refuses to be used as if it had been called."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        update_wrapper(cast("Any", self), method)

    def __get__(self, call: NotAValue | None, kind: type | None = None) -> Any:  # noqa: ANN401 - one of the two
        """Return the method of a call, or this object if there is none."""
        if call is None:
            return self
        return _Uncalled(call, self._method)


def method_of_call(method: M) -> M:
    """Make a method refuse to be used as if it had been called."""
    return cast("M", _MethodOfCall(method))


class CallHandle(NotAValue, Generic[R_co]):
    """A call that a durable handler started: a separate task, which runs while the handler does other things.

    Pass it to `Context.gather`, get its `result`, or return it in place of its result. It can be stored in
    lists, sets and dicts, and compared with other calls.
    """

    def __init__(
        self,
        durable_run: DurableRun,
        number: int,
        handler: str,
        read_results: Callable[[JournalCursor, list[int]], list[Any]],
    ) -> None:
        self.durable_run = durable_run
        self.read_results = read_results
        self.handler = handler
        self.number = number

    @overload
    def result(self: CallHandle[Outcome]) -> Any: ...  # noqa: ANN401 - the content of what it returns
    @overload
    def result(self: CallHandle[X]) -> X: ...
    @method_of_call
    def result(self) -> Any:
        """Return the result of the called handler. The caller is suspended until then.

        Raises:
            CallFailed: The call did not succeed.
        """
        return self.wait()

    def wait(self) -> Any:  # noqa: ANN401 - the same
        """Return the result, as `result` does."""
        (outcome,) = self.durable_run.perform(f"the result of {self!r}", self.read_results, [self.number])
        if isinstance(outcome, CallFailed):
            raise outcome
        return outcome

    def __repr__(self) -> str:
        return f"<Call {self.number} of {self.handler!r}>"

    def describe_misuse(self) -> str:
        """Return the error message for using the handle as the result."""
        return "A Call is not the result of the call. Use call.result() to get the result."

    def __getattr__(self, name: str) -> NoReturn:
        raise Misuse(f"A Call has no attribute {name!r}. {self.describe_misuse()}")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CallHandle):
            return self is other
        return super().__eq__(other)

    def __hash__(self) -> int:
        return object.__hash__(self)
