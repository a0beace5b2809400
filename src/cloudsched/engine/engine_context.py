"""The objects that the engine's parts share: one frozen object, made once for an app."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.wakeups import executor_wakeups
from cloudsched.engine.ports.procedure import run_procedure

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta
    from random import Random

    from cloudsched.domain.transitions.commit import VersionedTask
    from cloudsched.engine.durable.archive import JournalArchive
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.blobs import Blobs
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.signed_dispatches import DispatchSender
    from cloudsched.engine.state.commits import Committer
    from cloudsched.engine.state.log_keeper import LogKeeper
    from cloudsched.engine.state.quotas import Quotas
    from cloudsched.engine.usage.ledger import UsageLedger
    from cloudsched.engine.usage.usage_limit import UsageLimit

_LOG = own_logger(__name__)


class EngineSettings(Protocol):
    """The settings that the engine reads, as `cloudsched.Settings` describes them."""

    @property
    def minimum_lead(self) -> timedelta: ...  # noqa: D102
    @property
    def secret(self) -> str: ...  # noqa: D102
    @property
    def retention(self) -> timedelta | None: ...  # noqa: D102
    @property
    def time_limit(self) -> timedelta: ...  # noqa: D102
    @property
    def replays_each_step(self) -> bool: ...  # noqa: D102


class RunningHook(NamedTuple):
    """An `on_failure` hook that this process is calling."""

    handler: str
    since: datetime
    until: datetime
    """The instant from which on it hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineContext:
    """The store, the queue and the clock, and the objects that are built directly on them."""

    settings: EngineSettings
    reads_preferences: bool
    """True if owners' preferences choose the channels of new tasks: mail or push is set up, or settings say so."""
    registry: Registry
    """The handlers, with the built-in ones."""
    clock: Clock
    random: Random
    store: Store
    sender: DispatchSender
    committer: Committer
    """Loads, decides, commits and logs, again after each conflict."""
    logs: LogKeeper
    blobs: Callable[[], Blobs]
    """Stores what is too large for a document. Like those below it is made when it is first needed."""
    archive: Callable[[], JournalArchive]
    """Loads journals, and moves those of finished executions into their records."""
    quotas: Callable[[], Quotas]
    usage: Callable[[], UsageLedger]
    """Records the usage that tasks have counted."""
    usage_limit: Callable[[], UsageLimit]
    """Says whether owners may use more."""
    hooks: dict[tuple[str, str], RunningHook] = field(default_factory=dict)
    """The `on_failure` hooks that have not returned, by task and execution."""

    def replan(self, stored: VersionedTask) -> VersionedTask:
        """Plan a task with the time zone data in use, commit and dispatch it, unless that is done.

        After QueueUnavailable it is planned, and the sweep sends the dispatch.
        """
        from cloudsched.domain.transitions.replan import replan_zone  # noqa: PLC0415 - once in a release

        task = stored.task
        transition = replan_zone(task, self.clock.now(), self.settings.minimum_lead)
        if transition.task is task:
            return stored
        replanned = transition.because("new time zone data").having(base=stored)
        committed = run_procedure(self.committer.commit(replanned))
        release = "" if committed.task.zone_plan is None else committed.task.zone_plan.release
        _LOG.info("replanned with tzdata %s", release, extra={"action": "replanned", "taskId": task.id})
        if committed.task.next_execution_time != task.next_execution_time:
            self.sender.send(committed.task, executor_wakeups(committed.task), self.clock.now())
        return committed
