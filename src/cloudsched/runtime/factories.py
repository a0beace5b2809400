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
    from collections.abc import Callable, Iterator

    from cloudsched.adapters.circuit_breaker import CircuitBreakerProxy
    from cloudsched.adapters.firestore.listener import FirestoreListener
    from cloudsched.adapters.firestore.own_client import Joins
    from cloudsched.adapters.firestore.store import FirestoreStore
    from cloudsched.adapters.google.cloud_tasks import CloudTasksDispatcher
    from cloudsched.domain.explanation.findings import Finding
    from cloudsched.domain.responses.overview_responses import Need
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
    """A circuit breaker for each remote service in use, and the places of all calls to partners.

    Partners are what tasks can go on without: mail, chats, addresses of users, models.
    """

    def __init__(self) -> None:
        from cloudsched.adapters.circuit_breaker import Places

        self._breakers: dict[str, CircuitBreakerProxy[Any]] = {}
        self.places: Places = Places()

    def guard(
        self,
        name: str,
        port: T,
        error: type[Unavailable],
        service: str = "",
        methods: tuple[str, ...] = (),
        find_host: Callable[..., str] | None = None,
    ) -> T:
        """Return a port's adapter behind a circuit breaker that opens when this error repeats.

        With `methods`, which are those that call the service, it is a partner's. See `CircuitBreakerProxy`.
        """
        from cloudsched.adapters.circuit_breaker import CircuitBreakerProxy

        breaker = CircuitBreakerProxy(
            *(port, error, service or f"The {name}"),
            places=self.places if methods else None,
            find_host=find_host,
            methods=methods or None,
        )
        self._breakers[name] = breaker
        return breaker.port

    @property
    def states(self) -> dict[str, str]:
        """The state of each, by its service: closed, open or half_open."""
        return {name: breaker.state for name, breaker in tuple(self._breakers.items())}

    def explain(self, name: str, host: str = "") -> Iterator[Finding]:
        """Yield that a partner does not answer, or one host of users' addresses, if so."""
        from cloudsched.domain.explanation.findings import Finding, Reason

        breaker = self._breakers.get(name)
        if breaker is not None and host in breaker.list_silent():
            yield Finding(reason=Reason.NO_ANSWER, sentence=_say_silent(breaker.service))

    def find_causes(self, owner: str | None) -> Iterator[Need]:
        """Yield which partners do not answer. Addresses of users concern one owner each, and are named to operators."""
        from cloudsched.domain.documents.task import NeedCause
        from cloudsched.domain.responses.overview_responses import Need

        for name, breaker in tuple(self._breakers.items()):
            hosts = breaker.list_silent()
            if breaker.is_partner and hosts and (owner is None or hosts == [""]):
                more = f" at {hosts[0]}" + (f" and {len(hosts) - 1} more" if hosts[1:] else "") if hosts[0] else ""
                sentence = _say_silent(breaker.service + more)
                yield Need(cause=NeedCause.NO_ANSWER, sentence=sentence, subject=name, path="deliveries")


def _say_silent(service: str) -> str:
    return f"{service} does not answer. Calls to it are held back, and one is tried every few seconds."


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
