"""The turns of an async handler's durable operations: the journal records one after the other.

Operations that are requested at the same time are queued in the order of their start. A replay gives each its turn
when the journal has it next, since the code between two operations may take longer or shorter than it did before.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from cloudsched.errors import WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.journal import StepKind

Recorded: TypeAlias = "tuple[StepKind, str]"
"""What an entry of the journal records: the kind and the name of an operation."""

LATECOMER_SECONDS: Final = 1.0
"""The time in which the operation that the journal has next has to be requested, once another waits."""


class _Waiting(NamedTuple):
    """An operation that waits for its turn."""

    what: str
    recorded: Recorded | None
    turn: asyncio.Future[None]
    loop: asyncio.AbstractEventLoop

    def begin(self) -> None:
        """Let it begin. The operation before it may have ended on another loop."""
        self.loop.call_soon_threadsafe(lambda: None if self.turn.done() else self.turn.set_result(None))


class OperationTurns:
    """Lets one operation after the other begin. `find_next` returns what the journal has next, if it has anything."""

    def __init__(self, find_next: Callable[[], Recorded | None]) -> None:
        self._find_next = find_next
        self._waiting: list[_Waiting] = []
        self._current: str | None = None
        self._abandoned: str | None = None
        self._patience: asyncio.TimerHandle | None = None
        """Ends the time in which the operation that the journal has next has to come."""

    @property
    def current(self) -> str | None:
        """The operation that is in progress, or that waits for its turn."""
        return self._abandoned or self._current or next((each.what for each in self._waiting), None)

    async def take(self, what: str, recorded: Recorded | None) -> None:
        """Wait for the turn of an operation. `recorded` is None if the journal has no entry of its own for it."""
        self.require_none_abandoned(what)
        if self.current is None and self._fits(recorded):
            self._begin(what)
            return

        loop = asyncio.get_running_loop()
        own = _Waiting(what, recorded, loop.create_future(), loop)
        self._waiting.append(own)
        self._pass_on()
        try:
            await own.turn
        except asyncio.CancelledError:
            if own in self._waiting:
                self._waiting.remove(own)
            else:
                self.give_back()
            raise
        self.require_none_abandoned(what)

    def give_back(self) -> None:
        """End the present turn."""
        self._current = None
        self._pass_on()

    def abandon(self) -> None:
        """Note that nobody awaits the present operation any longer, which goes on. No other one may follow it."""
        self._abandoned = self._current
        for each in self._waiting:
            each.begin()

    def require_none_abandoned(self, what: str) -> None:
        """Check that no operation was left alone while it was in progress: a replay might await it."""
        if self._abandoned is not None:
            raise WorkflowError(
                f"{what} is requested while {self._abandoned} is in progress, which was cancelled and goes on. A "
                "replay might not cancel it. Give a step a `timeout`, and let it end."
            )

    def _fits(self, recorded: Recorded | None) -> bool:
        """Return whether an operation may be the next one, as far as the journal tells."""
        expected = self._find_next()
        return expected is None or recorded in {None, expected}

    def _pass_on(self, *, is_late: bool = False) -> None:
        """Let the next operation begin: the first one that the journal has next, or the first one of all."""
        if self._current is not None or not self._waiting:
            return
        fitting = [each for each in self._waiting if self._fits(each.recorded)]
        if not fitting and not is_late:  # what the journal has next may be requested in a moment
            if self._patience is None:
                self._patience = self._waiting[0].loop.call_later(LATECOMER_SECONDS, self._lose_patience)
            return

        chosen = (fitting or self._waiting)[0]
        self._waiting.remove(chosen)
        self._begin(chosen.what)
        chosen.begin()

    def _begin(self, what: str) -> None:
        self._current = what
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        self._patience = None
        self._pass_on(is_late=True)
