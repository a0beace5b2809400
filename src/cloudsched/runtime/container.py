"""Wire an app's parts together, each created on first use, as the settings say or as a test passes them."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast

from cloudsched.adapters.clocks import EmulatorClock, ManualClock, SystemClock
from cloudsched.config.settings import Settings, StoreKind
from cloudsched.domain.transitions.wakeups import SWEEP_PREFIX
from cloudsched.engine.builtin_handlers import with_builtin_handlers
from cloudsched.engine.concurrency.fork_safety import make_reentrant_lock
from cloudsched.engine.engine_context import EngineContext
from cloudsched.engine.execution.executor import Executor, WorkInProgress
from cloudsched.engine.options.table import make_options
from cloudsched.engine.ports.procedure import Procedure, make_procedure
from cloudsched.engine.signed_dispatches import DeferringSender, DispatchSender, SigningKeys
from cloudsched.engine.state.commits import Committer
from cloudsched.errors import Forbidden, InvalidInput, Misconfigured, QueueUnavailable, StoreUnavailable
from cloudsched.features.table import FEATURES, find_place
from cloudsched.runtime.factories import (
    AppParts,
    Circuits,
    Replacements,
    make_log_keeper,
    open_cloud_tasks_dispatcher,
    open_firestore_listener,
    open_firestore_store,
)
from cloudsched.runtime.lazy_property import lazy_property

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from cloudsched.adapters.firestore.own_client import Joins
    from cloudsched.adapters.firestore.store import FirestoreStore
    from cloudsched.adapters.google.queue_admin import QueueAdmin
    from cloudsched.domain.transitions.claim import DeliveryResult
    from cloudsched.engine.child_tasks import ChildTasks
    from cloudsched.engine.durable.archive import JournalArchive
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.blobs import Blobs
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.listener import Listener
    from cloudsched.engine.ports.model import Model
    from cloudsched.engine.ports.queue import Dispatcher
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.queries.causes import Causes
    from cloudsched.engine.queries.conditions import Conditions, QueueWatch
    from cloudsched.engine.state.quotas import Quotas
    from cloudsched.engine.sweep.shard_sweeps import ShardSweeps, SweepNote
    from cloudsched.engine.sweep.sweeper import Sweeper
    from cloudsched.engine.tasks.follow_changes import Followers
    from cloudsched.engine.tasks.scheduler import Scheduler
    from cloudsched.engine.tracing import Tracer
    from cloudsched.engine.usage.usage_limit import UsageLimit
    from cloudsched.runtime.many_tasks import ManyTasks, SweepAlarm

W = TypeVar("W", bound="Wiring")


class Container:
    """The parts of one app."""

    def __init__(
        self,
        registry: Registry,
        settings: Settings | None = None,
        **parts: Unpack[AppParts],
    ) -> None:
        self.registry = registry
        self._settings = settings
        self._store = parts.get("store")
        self._dispatcher = parts.get("dispatcher")
        self._blobs = parts.get("blobs")
        self._clock = parts.get("clock")
        self._monotonic = parts.get("monotonic")
        self._holder = parts.get("holder")
        self.given_model: Model | None = parts.get("language_model")
        self.chance: random.Random = parts.get("chance") or random.Random()  # noqa: S311 - spreads retries; not used for security
        self.circuits: Circuits = Circuits()
        self._wired: dict[type, Wiring] = {}
        self.build_lock: threading.RLock = make_reentrant_lock()
        """The one lock of all parts. They are made of each other, so with two, threads could wait for each other."""
        self.how_to_start = ""
        """What to write to start what brings the store, if the app is part of a service that has not been
        started."""
        self.serves_links_only = False
        """True in the public function for links, which has no secret: the sweep sends what it makes due."""
        self.hanging = ""
        """How many handlers hang where the tasks run, which, and since when. Empty if none does."""

    def wire(self, kind: type[W]) -> W:
        """Return the parts of a feature, made on first use.

        A feature's own code calls this, by `Wiring.of`.
        """
        with self.build_lock:
            if kind not in self._wired:
                self._wired[kind] = kind(self)
            return cast("W", self._wired[kind])

    def feature(self, name: str) -> Any:  # noqa: ANN401 - of a feature, which the kernel does not know
        """Return the parts of a feature by its name in the table.

        Raises Misconfigured if it was taken out.
        """
        for feature in FEATURES:
            if feature.name == name:
                return self.wire(find_place(feature.wiring))
        raise Misconfigured(f"This installation of cloudsched has no {name}.")

    def replace(self, **parts: Unpack[Replacements]) -> None:
        """Use these parts from now on, as a test or the local stack does.

        Objects made of earlier ones keep them.
        """
        self.__dict__.update(parts)

    def close(self) -> None:
        """Close the store, the queue, its listener and a remote clock, if they were opened."""
        if isinstance(clock := self.__dict__.get("clock"), EmulatorClock):
            clock.close()
        for wired in self._wired.values():
            wired.close()
        for name in ("queue_watch", "dispatcher", "store"):
            if (opened := self.__dict__.pop(name, None)) is not None:
                opened.close()

    @lazy_property
    def settings(self) -> Settings:
        """The app's settings, read from the environment if none were passed."""
        return self._settings or Settings.from_environment()

    @lazy_property
    def clock(self) -> Clock:
        """The source of the current time."""
        settings = self.settings
        if settings.is_deployed and not settings.tasks_emulator and not isinstance(self._clock, SystemClock | None):
            raise Misconfigured("A deployed function must use the system clock; remove `clock`.")
        if self._clock is not None:
            return self._clock
        if settings.tasks_emulator:
            return EmulatorClock(settings.tasks_emulator)
        return SystemClock()

    @lazy_property
    def store(self) -> Store:
        """Stores tasks and their executions."""
        if self._store is not None:
            return self._store
        match self._require_store():
            case "sqlite":
                from cloudsched.adapters.sqlite.store import SqliteStore

                return SqliteStore(self.settings.data, on_removed=self.blobs.delete)
            case "firestore":
                return self.circuits.guard("store", open_firestore_store(self.settings), StoreUnavailable)

    def _require_store(self) -> StoreKind:
        try:
            return self.settings.require_store()
        except Misconfigured:
            if self.how_to_start:
                raise Misconfigured(self.how_to_start) from None
            raise

    @lazy_property
    def quotas(self) -> Quotas:
        """Limits what each user may have."""
        from cloudsched.engine.state.quotas import QuotaLimits, Quotas

        access = self.settings.access
        limits = QuotaLimits(
            access.max_active_tasks, access.max_creations, access.least_interval, access.max_run_creations
        )
        return Quotas(store=self.store, clock=self.clock, random=self.chance, limits=limits)

    @lazy_property
    def dispatcher(self) -> Dispatcher:
        """Carries dispatches to the executor."""
        if self._dispatcher is not None:
            return self._dispatcher
        if self._store is None:
            self._require_store()  # reports a missing store before a missing queue
        return self.circuits.guard("queue", open_cloud_tasks_dispatcher(self.settings), QueueUnavailable)

    @lazy_property
    def queue_admin(self) -> QueueAdmin | None:
        """Administers the queues in Cloud Tasks. None if something else carries the dispatches.

        Raises Forbidden unless it is switched on. A local Cloud Tasks asks for no role.
        """
        settings = self.settings
        if not settings.tasks_emulator:
            if self._dispatcher is not None:
                return None
            if not settings.queue_admin:
                hint = 'Set QUEUE_ADMIN="on" in infra/config.sh, or CLOUDSCHED_QUEUE_ADMIN=on in the environment.'
                raise Forbidden(f"The administration of queues is switched off. {hint}")
        from cloudsched.adapters.google.queue_admin import QueueAdmin

        return QueueAdmin(
            project=settings.project,
            location=settings.location,
            queue=settings.queue,
            queues_per_priority=settings.queues_per_priority,
            emulator=settings.tasks_emulator,
        )

    @lazy_property
    def blobs(self) -> Blobs:
        """Stores results that are too large for a document."""
        from cloudsched.adapters.blobs import open_blobs

        return self._blobs or open_blobs(self.settings.bucket, self.settings.data)

    @lazy_property
    def _keys(self) -> SigningKeys:
        return SigningKeys(self.settings.secret, self.settings.previous_secret)

    def check_settings(self) -> None:
        """Create what the settings name, so that mistakes in them are found before anything starts.

        Nothing is connected. Raises Misconfigured.
        """
        _ = self._keys, self.handlers
        for feature in FEATURES:
            if feature.settings:
                find_place(feature.settings)(self)

    @lazy_property
    def _sender(self) -> DispatchSender:
        if self.serves_links_only and not self.settings.secret:
            return DeferringSender()
        return DispatchSender(self.dispatcher, self._keys)

    @lazy_property
    def handlers(self) -> Registry:
        """The app's handlers with the built-in ones. It opens neither store nor queue."""
        registry = with_builtin_handlers(self.registry, self)
        for feature in FEATURES:
            for place in feature.optional_handlers:
                registry = find_place(place)(self, registry)
        return registry

    @lazy_property
    def engine(self) -> EngineContext:
        """The context that the engine's parts share."""
        engine = EngineContext(
            settings=self.settings,
            reads_preferences=self.settings.reads_preferences,
            registry=self.handlers,
            clock=self.clock,
            random=self.chance,
            store=self.store,
            sender=self._sender,
            committer=Committer(self.store),
            logs=make_log_keeper(self.settings),
            blobs=lambda: self.blobs,
            archive=lambda: self._archive,
            quotas=lambda: self.quotas,
            usage=lambda: self.many_tasks.ledger,
            usage_limit=lambda: self.usage_limit,
        )
        engine.committer.options = make_options(engine)
        return engine

    @lazy_property
    def scheduler(self) -> Scheduler:
        """Creates and changes tasks."""
        from cloudsched.engine.tasks.scheduler import Scheduler

        return Scheduler(self.engine, self.child_tasks)

    def join(self, group: object) -> Scheduler:
        """Return a scheduler whose changes are part of a caller's own transaction or batch.

        Raises InvalidInput if it is not one of Firestore's, of the same database, in progress.
        """
        from cloudsched.engine.tasks.joined import JoinedScheduler

        return JoinedScheduler(
            self.engine,
            self.child_tasks,
            self.joins.join(group),
            self.dispatcher,
            self._keys,
        )

    @lazy_property
    def joins(self) -> Joins:
        """Joins callers' own transactions and batches. Raises InvalidInput if tasks are not in Firestore."""
        from cloudsched.adapters.firestore.own_client import Joins

        if not hasattr(self.store, "over"):
            hint = "With SQLAlchemy or Django, cloudsched.outbox joins their transactions."
            raise InvalidInput("transaction", "cannot be joined: tasks are not in Firestore here", hint)
        return Joins(cast("FirestoreStore", self.store))

    @lazy_property
    def followers(self) -> Followers:
        """Plans again what depends on a changed record."""
        from cloudsched.engine.tasks.follow_changes import Followers

        return Followers(self.store, self.clock, lambda: self.scheduler, self.chance)

    @lazy_property
    def many_tasks(self) -> ManyTasks:
        """Runs the sweep, batch changes and counts."""
        from cloudsched.runtime.many_tasks import ManyTasks

        alarm = None
        if self.settings.sweep_ping:
            alarm = self.sweep_alarm
        from importlib.metadata import version

        own = self.settings.service_version or f"cloudsched {version('cloudsched')}"
        parts = ManyTasks(
            self.store,
            self.clock,
            lambda: self.scheduler,
            lambda: self.engine,
            build_lock=self.build_lock,
            sweep_alarm=alarm,
            own_version=own,
        )
        parts.has_free_counts = self.settings.store == "sqlite"
        return parts

    @lazy_property
    def queue_watch(self) -> QueueWatch | None:
        """Says whether a queue is paused. None if this process may not ask.

        It has a connection of its own: a failure to ask must not hold dispatches back.
        """
        settings = self.settings
        if not settings.tasks_emulator and (self._dispatcher is not None or not settings.queue_admin):
            return None
        return open_cloud_tasks_dispatcher(settings)

    @lazy_property
    def conditions(self) -> Conditions:
        """Looks at what tasks need to run, for receipts and explanations."""
        from cloudsched.engine.queries.conditions import Conditions

        return Conditions(
            *(self.store, self.clock, self.handlers, self.load_sweep, self.queue_watch),
            [partial(find_place(each.conditions), self) for each in FEATURES if each.conditions],
        )

    @lazy_property
    def causes(self) -> Causes:
        """Finds what keeps many tasks from running at once."""
        from cloudsched.engine.queries.causes import Causes

        places = [self.circuits.find_causes]
        places += [partial(find_place(each.causes), self) for each in FEATURES if each.causes]
        return Causes(self.store, self.clock, time.monotonic, self.handlers, self.conditions, places)

    def note_change(self) -> None:
        """Forget what was found to keep tasks from running, so that whoever has acted sees what came of it."""
        if (causes := vars(self).get("causes")) is not None:
            causes.forget()

    def forget_causes(self) -> None:
        """Forget what was found of queues, handlers and budgets, as after one was changed here."""
        self.conditions.forget()
        self.causes.forget()

    @lazy_property
    def load_sweep(self) -> Callable[[], SweepNote | None]:
        """Loads the note of the last sweep."""
        return self.many_tasks.sweep_notes.load

    @lazy_property
    def usage_limit(self) -> UsageLimit:
        """Limits what owners use."""
        from cloudsched.engine.usage.usage_limit import UsageLimit

        places = [feature.usage_limit for feature in FEATURES if feature.usage_limit]
        return cast("UsageLimit", find_place(places[0])(self)) if places else UsageLimit()

    @lazy_property
    def sweep_alarm(self) -> SweepAlarm:
        """Tells the operator's dead-man's switch how each sweep went."""
        from cloudsched.adapters.safe_http import dead_man_switch, make_session
        from cloudsched.runtime.many_tasks import SweepAlarm

        settings = self.settings
        reachable = (
            *settings.access.reachable,
            *dead_man_switch.list_reachable(is_deployed=settings.is_deployed),
        )
        make = partial(make_session, reachable, max_seconds=dead_man_switch.WAIT, for_one_call=True)
        caller = dead_man_switch.SwitchCaller(partial(make, max_bytes=dead_man_switch.MAX_ANSWER))
        return SweepAlarm(settings.sweep_ping, caller)

    @lazy_property
    def tracer(self) -> Tracer:
        """Traces a task from its caller through the queue to its handler."""
        from cloudsched.runtime.telemetry import make_tracer

        return make_tracer(self.settings)

    @lazy_property
    def child_tasks(self) -> ChildTasks:
        """Creates, cancels and removes the tasks that handlers call."""
        from cloudsched.engine.child_tasks import ChildTasks

        return ChildTasks(self.engine)

    @lazy_property
    def _archive(self) -> JournalArchive:
        from cloudsched.engine.durable.archive import JournalArchive

        return JournalArchive(self.store, self.blobs)

    @property
    def seconds(self) -> Callable[[], float] | None:
        """Measures real time. None in a simulation, whose result must not depend on a slow machine."""
        return self._monotonic or (None if isinstance(self.clock, ManualClock) else time.monotonic)

    @lazy_property
    def executor(self) -> Executor:
        """Runs due tasks when their dispatches are delivered."""
        # Other clocks are a simulation's or a local stack's own.
        checks_clock = isinstance(self.clock, SystemClock)
        in_progress = None
        if self._holder is not None:
            in_progress = WorkInProgress(self._holder, self.seconds)
        sleep = time.sleep if checks_clock else None
        return Executor(
            *(self.engine, self._keys, self.tracer),
            checks_clock=checks_clock,
            seconds=self.seconds,
            sleep=sleep,
            in_progress=in_progress,
        )

    def deliver(self, body: bytes, token: str) -> Procedure[DeliveryResult]:
        """Return the steps that process a delivered dispatch. See `Executor.deliver`."""
        if body.startswith(SWEEP_PREFIX):
            return make_procedure(partial(self.shard_sweeps.deliver, body, token))
        return self.executor.deliver(body, token)

    @lazy_property
    def sweeper(self) -> Sweeper:
        """Repairs and finishes what crashes and lost dispatches left behind."""
        return self._make_sweeper(None)

    @lazy_property
    def shard_sweeps(self) -> ShardSweeps:
        """Sweeps each shard of the store, where there are several."""
        from cloudsched.engine.sweep.shard_sweeps import FAN_OUT_THREADS, ShardSweeps

        threads = 1
        if isinstance(self.clock, SystemClock):
            threads = FAN_OUT_THREADS
        return ShardSweeps(self.engine, self._keys, self._make_sweeper, threads=threads)

    def _make_sweeper(self, shard: int | None) -> Sweeper:
        from cloudsched.adapters.in_process_queue import FallbackDispatcher
        from cloudsched.engine.sweep.sweeper import SHARD_THREADS, Sweeper

        threads = 1
        if isinstance(self.clock, SystemClock):
            threads = SHARD_THREADS
        if not self.settings.fallback:
            return Sweeper(self.engine, self.child_tasks, shard=shard, threads=threads, holder=self._holder)
        sender = DispatchSender(
            FallbackDispatcher(self.dispatcher, self.executor.deliver, self.clock),
            self._keys,
        )
        return Sweeper(replace(self.engine, sender=sender), self.child_tasks, shard=shard, threads=threads)

    @lazy_property
    def listener(self) -> Listener | None:
        """Notifies workers of new work. None with stores that workers must poll."""
        if self._store is None and self.settings.require_store() == "firestore":
            return open_firestore_listener(self.settings)
        return None


class Wiring:
    """The parts that a feature adds to an app.

    The container keeps one object for each feature that is used.
    """

    def __init__(self, container: Container) -> None:
        self.container = container
        self.build_lock: threading.RLock = container.build_lock

    @classmethod
    def of(cls, container: Container) -> Self:
        """Return the parts that a container has of this kind."""
        return container.wire(cls)

    def replace(self, **parts: Any) -> None:
        """Use these parts from now on, as a test or the local stack does.

        Objects made of earlier ones keep them.
        """
        self.__dict__.update(parts)

    def close(self) -> None:
        """Close what was opened. A feature that opens nothing leaves it as it is."""
