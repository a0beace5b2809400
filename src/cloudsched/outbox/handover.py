"""One pass through the outbox: claim rows, hand each over, and record what became of it.

A crash after a row was handed over and before that is recorded repeats it, which changes nothing: the target knows the
row. What a target refuses fails, and is told in the row. What it does not answer is tried again, later each time, and
after a few such rows in succession the pass ends: the target is taken to be down, and nothing is held back for it.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, assert_never

from cloudsched.domain.transitions.drafts import TaskDraft
from cloudsched.errors import (
    CloudschedError,
    InvalidSchedule,
    Misconfigured,
    NotAllowed,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
    VersionConflict,
)
from cloudsched.outbox.rows import CLAIM, Action, Entry, State
from cloudsched.outbox.target import start_now

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.outbox.rows import Rows
    from cloudsched.outbox.target import Target

    Result = tuple[Entry, State, datetime, str]

log = logging.getLogger(__name__)

FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(seconds=30)
"""Between which a row waits after an attempt that was not answered: doubled with each."""
SILENCE = 3
"""After how many rows in succession that were not answered a pass ends."""
_MAX_ERROR = 2000
"""How many characters of an error a row keeps."""
_LATER = (Unavailable, Unauthenticated, Misconfigured, VersionConflict)
"""What says nothing of the row itself."""


@dataclass(slots=True)
class Pass:
    """What one pass has done."""

    handed_over: int = 0
    failed: int = 0
    is_down: bool = False
    """Whether it ended early, because the target did not answer."""


class Handover:
    """Hands rows over to a target.

    Args:
        rows: The rows.
        target: Where they go.
        keep: How long rows are kept that were handed over.
    """

    def __init__(self, rows: Rows, target: Target, keep: timedelta) -> None:
        self._rows = rows
        self._target = target
        self._keep = keep

    def run(self, is_stopped: Callable[[], bool] = lambda: False) -> Pass:
        """Hand over all rows that are due, until `is_stopped`. Raises what the database raises."""
        done = Pass()
        while not is_stopped() and not done.is_down:
            claim, entries = self._rows.claim(self._target.now())
            if not entries:
                return done
            results: list[Result] = []
            try:
                self._hand_over_all(entries, results, done, is_stopped)
            finally:
                self._rows.settle(claim, results, self._target.now())
        return done

    def purge(self) -> None:
        """Delete rows that were handed over long enough ago."""
        self._rows.purge(self._target.now())

    def _hand_over_all(
        self, entries: list[Entry], results: list[Result], done: Pass, is_stopped: Callable[[], bool]
    ) -> None:
        silent, claim_ends = 0, self._target.now() + CLAIM / 2
        for entry in entries:
            if is_stopped() or silent == SILENCE or self._target.now() >= claim_ends:
                break  # the rest of the claim is released
            result = self._hand_over(entry)
            results.append(result)
            match result[1]:
                case State.DONE:
                    done.handed_over, silent = done.handed_over + 1, 0
                case State.FAILED:
                    done.failed, silent = done.failed + 1, 0
                case State.PENDING:
                    silent += 1
                case unknown:
                    assert_never(unknown)
        done.is_down = silent == SILENCE

    def _hand_over(self, entry: Entry) -> Result:
        try:
            self._do(entry)
        except _LATER as error:
            return self._later(entry, error, None)
        except QuotaExceeded as error:
            if error.retry_after is not None:
                return self._later(entry, error, timedelta(seconds=error.retry_after))
            return self._fail(entry, error)
        except CloudschedError as error:
            return self._fail(entry, error)
        except Exception as error:
            log.exception("A row of the outbox could not be handed over", extra=_fields(entry))
            return self._later(entry, error, None)
        return entry, State.DONE, self._target.now() + self._keep, ""

    def _do(self, entry: Entry) -> None:
        match entry.action:
            case Action.CREATE:
                self._create(entry)
            case Action.CANCEL:
                try:
                    self._target.cancel(entry.task_id)
                except NotAllowed as error:  # it has ended meanwhile
                    log.info("Not cancelled: %s", error, extra=_fields(entry))
            case unknown:
                assert_never(unknown)

    def _create(self, entry: Entry) -> None:
        draft = TaskDraft.from_wire(json.loads(entry.content))
        try:
            self._target.create(entry.id, draft, entry.written_at)
        except InvalidSchedule as error:
            late = start_now(draft, self._target.now()) if error.field == "schedule.at" else None
            if late is None:
                raise
            self._target.create(entry.id, late, entry.written_at)

    def _later(self, entry: Entry, error: Exception, delay: timedelta | None) -> Result:
        waits = min(FIRST_DELAY * 2 ** min(entry.attempts - 1, 10), LONGEST_DELAY) if delay is None else delay
        log.warning("A row of the outbox waits: %s", error, extra=_fields(entry))
        return entry, State.PENDING, self._target.now() + waits, _describe(error)

    def _fail(self, entry: Entry, error: CloudschedError) -> Result:
        log.error("A row of the outbox was refused: %s", error, extra=_fields(entry))
        return entry, State.FAILED, self._target.now(), _describe(error)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_MAX_ERROR]


def _fields(entry: Entry) -> dict[str, str]:
    return {"action": "outbox", "taskId": entry.task_id, "row": entry.id}
