"""The app: handlers, and everything that can be done with their tasks. The only place where parts are assembled.

::

    from cloudsched import App, Context, Schedule

    app = App()

    @app.handler("greet")
    def greet(ctx: Context, greeting: Greeting) -> str:
        ctx.notify("Hello", f"Good morning, {greeting.name}")
        return "greeted"

    app.create(owner="ada", title="Greet", handler="greet", payload={"name": "Ada"},
               schedule=Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T09:00:00", timezone="Europe/Paris"))

An app is made at import and reaches nothing until it is used: its store and its queue are opened by the first call
that needs them, as `Settings` (from the environment unless given) describe.
"""

from __future__ import annotations

import copy
import random
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from cloudsched.adapters.clocks import EmulatorClock, SystemClock
from cloudsched.adapters.fallback import FallbackDispatcher
from cloudsched.config import Settings
from cloudsched.domain.drafts import LeadTimes, TaskDraft, wire_fields
from cloudsched.domain.planning import upcoming
from cloudsched.engine.durable import Durable
from cloudsched.engine.executor import Executor, Verdict
from cloudsched.engine.ports import Page, TaskQuery
from cloudsched.engine.records import running, with_running
from cloudsched.engine.registry import Registry
from cloudsched.engine.scheduler import Scheduler
from cloudsched.engine.sending import Sender
from cloudsched.engine.sweeper import Sweep, Sweeper
from cloudsched.engine.tally import ListedTally
from cloudsched.engine.tokens import Keys
from cloudsched.engine.trees import Tree, tree
from cloudsched.errors import InvalidInput, Misconfigured, NotFound, QueueUnavailable, StoreUnavailable
from cloudsched.parts import Part, cloud_tasks, firestore, firestore_tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime, timedelta

    from cloudsched.adapters.breaking import Circuit
    from cloudsched.domain.execution import Execution, Message
    from cloudsched.domain.policy import RetryPolicy
    from cloudsched.domain.task import Task
    from cloudsched.engine.ports import Blobs, Clock, Dispatcher, Store
    from cloudsched.engine.registry import OnFailure
    from cloudsched.engine.tally import Tally
    from cloudsched.engine.tracing import Tracer
    from cloudsched.errors import Unavailable

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")

MAX_PAGE = 500
"""How many items one page may have."""


class App:
    """A registry of handlers, and the scheduler, the executor and the sweep for their tasks.

    Args:
        settings: How to reach the store and the queue; read from the environment when first needed, if None.
        store: A store to use instead of the one that the settings name.
        dispatcher: A queue to use instead of the one that the settings name.
        blobs: Where large results are kept, instead of the place that the settings name.
        clock: A clock to use instead of the system's (or of the local Cloud Tasks', where settings name one).
        chance: The source of jitter.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        store: Store | None = None,
        dispatcher: Dispatcher | None = None,
        blobs: Blobs | None = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self.registry = Registry()
        self._settings = settings
        self._store = store
        self._dispatcher = dispatcher
        self._blobs = blobs
        self._clock = clock
        self.assembling = threading.RLock()
        self._circuits: dict[str, Circuit[Any]] = {}
        self._chance = chance or random.Random()  # noqa: S311 - it spreads retries, it guards nothing

    def handler(
        self,
        name: str,
        *,
        retry: RetryPolicy | int | bool | None = None,
        retry_on: type[Exception] | tuple[type[Exception], ...] = Exception,
        expected_duration: timedelta | None = None,
        on_failure: OnFailure | None = None,
    ) -> Callable[[F], F]:
        """Register a function as the handler of that name; see `Registry.register`."""
        return self.registry.register(
            name, retry=retry, retry_on=retry_on, expected_duration=expected_duration, on_failure=on_failure
        )

    @contextmanager
    def replaced(
        self,
        settings: Settings | None = None,
        *,
        store: Store | None = None,
        dispatcher: Dispatcher | None = None,
        blobs: Blobs | None = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> Iterator[App]:
        """Let the app use other parts for a while: what a test, a simulation or the local stack does.

        Code that has imported the app sees them too. The parts of before come back at the end; those given are not
        closed.
        """
        before = self.__dict__.copy()
        self.__dict__.clear()
        App.__init__(self, settings, store=store, dispatcher=dispatcher, blobs=blobs, clock=clock, chance=chance)
        self.registry = before["registry"]
        try:
            yield self
        finally:
            self.__dict__.clear()
            self.__dict__.update(before)

    def guarded(self, check: Callable[[Task], None]) -> App:
        """Return the app as it is to somebody who may not do everything; see `Scheduler.guarded`.

        Lists are not checked, nor are new tasks.
        """
        scheduler = self.scheduler  # with it, all that the two share is made
        view = copy.copy(self)
        view.__dict__["scheduler"] = scheduler.guarded(check)
        return view

    # ── What callers do ──────────────────────────────────────────────────────────────────────────────────────────

    def create(self, draft: TaskDraft | None = None, **fields: Any) -> Task:
        """Create a task, or edit the one of the same id and owner; see `TaskDraft` for the fields.

        `payload` may be an instance of the handler's model.

        Raises:
            InvalidInput: A field is wrong; nothing was stored.
            StoreUnavailable: The store did not answer; whether the task is stored is not known. With an id of the
                caller's own, asking again is safe.
        """
        return self.put(draft if draft is not None else TaskDraft.of(**fields))[0]

    def put(self, draft: TaskDraft, *, mark: str | None = None) -> tuple[Task, bool]:
        """Create or edit a task as `create` does, or see `Scheduler.create`; return it, and whether it is new."""
        return self.scheduler.create(draft, mark)

    def get(self, task_id: str) -> Task:
        """Return a task. Raises NotFound."""
        return self.scheduler.get(task_id)

    def tasks(self, query: TaskQuery | None = None, *, limit: int = 50, page_token: str | None = None) -> Page[Task]:
        """Return a page of the tasks that fit a query. Raises InvalidInput for a made-up page token."""
        return self.store.tasks(query or TaskQuery(), limit=_page_size(limit), page_token=page_token)

    def update(self, task_id: str, **changes: Any) -> Task:
        """Change some of a task's fields, by their Python names; None puts one back to its default."""
        return self.scheduler.update(task_id, wire_fields(changes))

    def patch(self, task_id: str, patch: dict[str, Any]) -> Task:
        """Change some of a task's fields by a JSON merge patch (RFC 7396)."""
        return self.scheduler.update(task_id, patch)

    def pause(self, task_id: str) -> Task:
        """Hold a task until it is resumed."""
        return self.scheduler.pause(task_id)

    def resume(self, task_id: str) -> Task:
        """Let a paused task go on from now."""
        return self.scheduler.resume(task_id)

    def cancel(self, task_id: str) -> Task:
        """End a task; its record stays."""
        return self.scheduler.cancel(task_id)

    def trigger(self, task_id: str) -> Task:
        """Run a task now, without moving its plan."""
        return self.scheduler.trigger(task_id)

    def retry(self, task_id: str, execution_id: str | None = None) -> Task:
        """Give an execution that did not succeed one more attempt; the task's last one, if none is named."""
        return self.scheduler.retry(task_id, execution_id)

    def backfill(self, task_id: str, start: datetime, end: datetime) -> Task:
        """Run the occurrences of a past range, `start` and `end` included, one after the other."""
        return self.scheduler.backfill(task_id, start, end)

    def delete(self, task_id: str) -> None:
        """Remove a task and its executions."""
        self.scheduler.delete(task_id)

    def upcoming(self, task_id: str, count: int = 10) -> list[datetime]:
        """Return the task's next occurrences, in UTC."""
        return upcoming(self.get(task_id), count)

    def executions(self, task_id: str, *, limit: int = 50, page_token: str | None = None) -> Page[Execution]:
        """Return a page of a task's executions, the latest first; those that are open are on the first page."""
        task = self.get(task_id)
        page = self.store.executions(task_id, limit=_page_size(limit), page_token=page_token)
        return page if page_token else with_running(task, page)

    def execution(self, task_id: str, execution_id: str) -> Execution:
        """Return one execution, open or ended. Raises NotFound."""
        task = self.get(task_id)
        run = task.run(execution_id)
        if run and (run.lease or run.suspension):
            return running(task, run, self.store.journal(task_id, execution_id) if run.steps else ())
        found = self.store.execution(task_id, execution_id)
        if found is None:
            raise NotFound("execution", execution_id)
        return found

    def send_event(self, task_id: str, name: str, payload: Any = None) -> Task:  # noqa: ANN401 - any JSON
        """Tell a task's durable handler something: what it waits for with `Context.wait_for`.

        Raises:
            InvalidInput: The payload is too large, or JSON cannot say it.
            NotAllowed: The task has ended, or too many events wait for it already.
        """
        return self.scheduler.send_event(task_id, name, payload)

    def tree(self, task_id: str) -> Tree:
        """Return a task with the calls below it. Raises NotFound."""
        return tree(self.scheduler.get(task_id), self._durable.nesting)

    def inbox(self, owner: str, *, limit: int = 50, page_token: str | None = None) -> Page[Message]:
        """Return a page of an owner's inbox, the newest first."""
        return self.store.inbox(owner, limit=_page_size(limit), page_token=page_token)

    # ── What the functions call ──────────────────────────────────────────────────────────────────────────────────

    def deliver(self, body: bytes, token: str) -> Verdict:
        """Do what a delivered dispatch asks for; see `Executor.deliver`."""
        return self.executor.deliver(body, token)

    def sweep(self) -> Sweep:
        """Repair what was lost; see `Sweeper.sweep`. To be called once a minute."""
        return self.sweeper.sweep()

    def close(self) -> None:
        """Let go of the store, the queue and a clock elsewhere, if they were opened."""
        if isinstance(clock := self.__dict__.get("clock"), EmulatorClock):
            clock.close()
        for name in ("dispatcher", "store"):
            if name in self.__dict__:
                self.__dict__.pop(name).close()

    # ── How it is put together ───────────────────────────────────────────────────────────────────────────────────

    @Part
    def settings(self) -> Settings:
        """What can be set from outside."""
        return self._settings or Settings.from_environment()

    @Part
    def clock(self) -> Clock:
        """Where the present comes from."""
        settings = self.settings
        if settings.is_deployed and not settings.tasks_emulator and not isinstance(self._clock, SystemClock | None):
            raise Misconfigured("A function in the cloud follows the system's clock and no other; remove `clock`.")
        if self._clock is not None:
            return self._clock
        return EmulatorClock(settings.tasks_emulator) if settings.tasks_emulator else SystemClock()

    @Part
    def store(self) -> Store:
        """Where tasks are kept."""
        if self._store is not None:
            return self._store
        if self.settings.store == "sqlite":
            from cloudsched.adapters.sqlite import SqliteStore  # noqa: PLC0415 - only who uses it pays for it

            return SqliteStore(self.settings.data)
        return self._guarded("store", firestore(self.settings), StoreUnavailable)

    @Part
    def tally(self) -> Tally:
        """What counts an owner's tasks."""
        if self._store is not None or self.settings.store == "sqlite":
            return ListedTally(self.store)
        return firestore_tally(self.settings)

    @Part
    def dispatcher(self) -> Dispatcher:
        """What carries dispatches to the executor."""
        if self._dispatcher is not None:
            return self._dispatcher
        return self._guarded("queue", cloud_tasks(self.settings), QueueUnavailable)

    def _guarded(self, name: str, port: T, error: type[Unavailable]) -> T:
        from cloudsched.adapters.breaking import Circuit  # noqa: PLC0415 - only remote services need it

        circuit = Circuit(port, error, f"The {name}")
        self._circuits[name] = circuit
        return circuit.port

    @property
    def circuits(self) -> dict[str, str]:
        """The state of the circuit breaker before each remote service that was used: closed, open or half_open."""
        return {name: circuit.state for name, circuit in self._circuits.items()}

    @Part
    def blobs(self) -> Blobs:
        """Where results are kept that are too large for a document."""
        from cloudsched.adapters.blobs import open_blobs  # noqa: PLC0415 - only who uses it pays for it

        return self._blobs or open_blobs(self.settings.bucket, self.settings.data)

    @Part
    def _durable(self) -> Durable:
        return Durable(
            store=self.store,
            blobs=self.blobs,
            sender=self._sender,
            clock=self.clock,
            registry=self.registry,
            chance=self._chance,
            settings=self.settings,
        )

    @Part
    def _keys(self) -> Keys:
        return Keys(self.settings.secret, self.settings.previous_secret)

    @Part
    def _sender(self) -> Sender:
        return Sender(self.dispatcher, self._keys)

    @Part
    def scheduler(self) -> Scheduler:
        """What changes tasks."""
        lead = LeadTimes(self.settings.default_lead, self.settings.minimum_lead)
        return Scheduler(
            store=self.store,
            sender=self._sender,
            clock=self.clock,
            registry=self.registry,
            lead=lead,
            retention=self.settings.retention,
            committer=self._durable.committer,
            nesting=self._durable.nesting,
        )

    @Part
    def tracer(self) -> Tracer:
        """What follows a task from its caller through the queue to its handler."""
        from cloudsched.telemetry import tracer_of  # noqa: PLC0415 - looks for what is installed

        return tracer_of(self.settings)

    @Part
    def executor(self) -> Executor:
        """What runs them."""
        return Executor(
            store=self.store,
            durable=self._durable,
            sender=self._sender,
            clock=self.clock,
            registry=self.registry,
            keys=self._keys,
            random=self._chance,
            tracer=self.tracer,
        )

    @Part
    def sweeper(self) -> Sweeper:
        """What repairs them."""
        sender = self._sender
        if self.settings.fallback:
            sender = Sender(FallbackDispatcher(self.dispatcher, self.deliver, self.clock), self._keys)
        return Sweeper(store=self.store, nesting=self._durable.nesting, sender=sender, clock=self.clock)


def _page_size(limit: int) -> int:
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput("pageSize", f"is {limit}", f"Give a number from 1 to {MAX_PAGE}.")
    return limit
