"""Open the parts of an app, importing each one's packages only when it is used."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from cloudsched.config.settings import EXECUTE_PATH, Settings
from cloudsched.engine.state.log_keeper import LogKeeper, LogSeal
from cloudsched.errors import Misconfigured, Unavailable

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from cloudsched.adapters.circuit_breaker import CircuitBreakerProxy
    from cloudsched.adapters.firestore.listener import FirestoreListener
    from cloudsched.adapters.firestore.own_client import Joins
    from cloudsched.adapters.firestore.store import FirestoreStore
    from cloudsched.adapters.google.cloud_tasks import CloudTasksDispatcher
    from cloudsched.engine.ports.blobs import Blobs
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.listener import Listener
    from cloudsched.engine.ports.model import Model
    from cloudsched.engine.ports.queue import Dispatcher
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.queries.conditions import QueueWatch
    from cloudsched.engine.sweep.shard_sweeps import SweepNote
    from cloudsched.engine.tracing import Tracer

T = TypeVar("T")


class AppParts(TypedDict, total=False):
    """The parts that an app is given instead of those that its settings name. See `App`."""

    store: Store | None
    dispatcher: Dispatcher | None
    blobs: Blobs | None
    clock: Clock | None
    chance: random.Random | None
    monotonic: Callable[[], float] | None
    language_model: Model | None
    holder: str | None
    """The name of this process, if no other executes the store's tasks while it lives. None if others may."""


class Replacements(AppParts, total=False):
    """The parts that tests and the local stack replace in a container, by the names of its properties."""

    circuits: Circuits
    joins: Joins
    listener: Listener | None
    load_sweep: Callable[[], SweepNote | None]
    queue_watch: QueueWatch | None
    tracer: Tracer


class Circuits:
    """A circuit breaker for each remote service in use."""

    def __init__(self) -> None:
        self._breakers: dict[str, CircuitBreakerProxy[Any]] = {}

    def guard(self, name: str, port: T, error: type[Unavailable]) -> T:
        """Return a port's adapter behind a circuit breaker that opens when this error repeats."""
        from cloudsched.adapters.circuit_breaker import CircuitBreakerProxy

        breaker = CircuitBreakerProxy(port, error, f"The {name}")
        self._breakers[name] = breaker
        return breaker.port

    @property
    def states(self) -> dict[str, str]:
        """The state of each, by its service: closed, open or half_open."""
        return {name: breaker.state for name, breaker in self._breakers.items()}


def open_firestore_store(settings: Settings) -> FirestoreStore:
    """Return the store that the settings name, in Firestore."""
    from cloudsched.adapters.firestore.store import FirestoreStore

    return FirestoreStore(
        project=settings.project,
        database=settings.database,
        emulator=settings.firestore_emulator,
        shards=settings.shards,
        prefix=settings.collection_prefix,
        name_index=settings.name_index,
    )


def open_firestore_listener(settings: Settings) -> FirestoreListener:
    """Return the listener that notifies workers of new work in Firestore."""
    from cloudsched.adapters.firestore.listener import FirestoreListener

    return FirestoreListener(
        project=settings.project,
        database=settings.database,
        emulator=settings.firestore_emulator,
        shards=settings.shards,
        prefix=settings.collection_prefix,
    )


def open_cloud_tasks_dispatcher(settings: Settings) -> CloudTasksDispatcher:
    """Return the queue that the settings name, in Cloud Tasks."""
    from cloudsched.adapters.google.cloud_tasks import CloudTasksDispatcher

    if not settings.executor_url:
        raise Misconfigured("Set CLOUDSCHED_EXECUTOR_URL to the address of the executor function.")
    return CloudTasksDispatcher(
        project=settings.project,
        location=settings.location,
        queue=settings.queue,
        queues_per_priority=settings.queues_per_priority,
        url=settings.executor_url + EXECUTE_PATH,
        emulator=settings.tasks_emulator,
        invoker=settings.invoker,
        audience=settings.executor_url,
    )


def make_log_keeper(settings: Settings) -> LogKeeper:
    """Return what keeps the logs of handlers, as the settings say."""
    if settings.kept_logs == "off":
        level = None
    else:
        level = logging.getLevelNamesMapping()[settings.kept_logs.upper()]
    make_seal = partial(LogSeal, settings.secret, settings.previous_secret)
    return LogKeeper(level, settings.keeps_print, make_seal)
