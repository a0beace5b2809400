"""How a durable handler is left where it has to wait, and what its journal is given to work with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.outcome import Outcome
    from cloudsched.domain.documents.task import Event, Parent, Task
    from cloudsched.engine.ports.blobs import Blobs
    from cloudsched.engine.ports.clock import Clock


class Suspended(BaseException):
    """Leaves a durable handler that has to wait, or that goes on after an `error` which it may not catch.

    It is no error, and is not to be caught.
    """

    def __init__(self, outcome: Outcome, error: Exception | None = None) -> None:
        self.outcome = outcome
        self.error = error
        super().__init__(
            f"The handler is suspended here ({getattr(outcome, 'reason', '')}), and is replayed when it can go on. If "
            "you see this, something has caught BaseException: catch Exception instead, and let this pass."
        )


@dataclass(frozen=True, slots=True)
class SuspendPolicy:
    """When a handler is suspended although it could go on."""

    until: datetime | None = None
    """From then on at its next durable point, since its function's time is nearly over."""
    every_step: bool = False
    """At every durable point: a test of whether it replays the same."""
    call_arguments: dict[tuple[str, datetime | None, int], str] = field(default_factory=dict)
    """What calls were given in such a test, by task, beginning and number: a journal itself does not compare it."""


class JournaledRun(Protocol):
    """The claimed run that a journal belongs to; `engine.execution.claimed_run` has it."""

    @property
    def task(self) -> Task:
        """The task as it was last read or written."""

    def append_journal(
        self, entries: Sequence[JournalEntry], calls_made: int, event: Event | None = None
    ) -> Task | None:
        """Commit entries, and take an event off the task; None if the lease is no longer held."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a journal needs from the engine."""

    claimed_run: JournaledRun
    clock: Clock
    function: Callable[[str], Callable[..., Any] | None]
    """The function of a handler, or None where it is not registered in this process."""
    blobs: Blobs
    chance: random.Random
    load: Callable[[], Sequence[JournalEntry]]
    make_call: Callable[[Task], bool]
    call_outcome: Callable[[str, str], tuple[bool, Any]]
    draft_call: Callable[[str, Any, str, dict[str, Any], Parent], Task]
    suspend_policy: SuspendPolicy
