"""The base of both kinds of outbox: they check a task before it is written, and hand rows over after it.

Threads hand rows over at once when this process has committed one, and by polling.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from cloudsched.domain.call_arguments import check_methods
from cloudsched.domain.handler_code import note_change
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.errors import InvalidInput, Misconfigured
from cloudsched.outbox.handover import AppTarget, ClientTarget, Handover, Target, to_content
from cloudsched.outbox.rows import Database, OutboxEntry, RowAction, Rows, State, new_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.app import App
    from cloudsched.client import Client

log: Final = own_logger(__name__)

POLL = timedelta(seconds=1)
"""The interval at which a relay looks for rows that others have written."""
_PURGE_SECONDS = 60.0


class GiveBack(Protocol):
    """Gives back what a relay's thread holds between two passes."""

    def __call__(self, *, is_last: bool) -> None:
        """Give it back, for good if the thread ends."""
        ...


class Relay:
    """A thread that hands rows over until it is stopped. As a context manager, it is stopped at the end.

    Several may run at once, in this process and in others: each row is claimed by one. An exception, such
    as that of a database which does not answer, is logged, and the thread goes on.

    Args:
        handover: The passes that it runs.
        poll: The interval at which it looks for rows that other processes have written.
        give_back: Called by the thread after each pass, and as the last one at its end, to give a connection back.
    """

    def __init__(self, handover: Handover, poll: timedelta, give_back: GiveBack) -> None:
        self._handover = handover
        self._poll = poll.total_seconds()
        self._give_back = give_back
        self._is_woken = threading.Event()
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cloudsched-outbox", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
        self._thread.join()

    def wake(self) -> None:
        """Look for rows now."""
        self._is_woken.set()

    def stop(self) -> None:
        """Let the thread end after the row that it hands over. The rest is released."""
        self._is_stopped.set()
        self._is_woken.set()

    def _run(self) -> None:
        purged_at = float("-inf")
        while not self._is_stopped.is_set():
            self._is_woken.clear()
            is_down = True
            try:
                is_down = self._handover.run(self._is_stopped.is_set).is_down
                if time.monotonic() - purged_at >= _PURGE_SECONDS:
                    purged_at = time.monotonic()
                    self._handover.purge()
            except Exception:
                log.exception("The outbox could not be read or written; the relay tries again")
            self._try_to_give_back(is_last=False)
            if is_down:  # a commit does not hurry what does not answer
                self._is_stopped.wait(self._poll)
            elif not self._is_stopped.is_set():
                self._is_woken.wait(self._poll)
        self._try_to_give_back(is_last=True)

    def _try_to_give_back(self, *, is_last: bool) -> None:
        try:
            self._give_back(is_last=is_last)
        except Exception:
            log.exception("A connection of the outbox's relay could not be given back")


KEEP = timedelta(days=7)
"""The time that rows are kept after they were handed over."""


@check_methods()
class Outbox:
    """Rows that create and cancel tasks, and the relay that hands them over.

    Whoever may write the table acts with the authority of the app, or of the client, that hands rows over.

    Args:
        database: The database that has the table.
        app: Checks tasks with its handlers before they are written, and takes them, unless there is a client.
        client: Takes the tasks through an API. Without an app, only their form is checked before.
        keep: The time that rows are kept after they were handed over.

    Raises:
        Misconfigured: There is neither an app nor a client.
    """

    def __init__(self, database: Database, app: App | None, client: Client | None, keep: timedelta) -> None:
        targets: list[Target] = []
        if app is not None:
            targets.append(AppTarget(app))
        if client is not None:
            targets.append(ClientTarget(client, app))
        if not targets:
            raise Misconfigured("An outbox hands tasks over to something: give it an app, a client or both.")
        self._checks = targets[0]
        self._rows = Rows(database)
        self._handover = Handover(self._rows, targets[-1], keep)
        self._relays: set[Relay] = set()

    @contextmanager
    def relay(self, *, poll: timedelta = POLL) -> Iterator[Relay]:
        """Hand rows over in a thread of this process until the block ends. See `Relay`.

        Rows that this process commits are handed over at once, and those of others within `poll`.
        """
        with ExitStack() as parts:
            relay = parts.enter_context(Relay(self._handover, poll, self._give_back))
            self._relays.add(relay)
            parts.callback(self._relays.discard, relay)
            yield relay

    def hand_over(self) -> int:
        """Hand over what is due now, here, and return how many rows were: for tests, and for a cron job."""
        return self._handover.run().handed_over

    def wake(self) -> None:
        """Let this process's relays look for rows now, instead of when they poll next."""
        for relay in list(self._relays):
            relay.wake()

    def rows(self, state: State | str = State.FAILED, *, limit: int = 100) -> list[OutboxEntry]:
        """Return the first rows of a state, in the order in which they were written."""
        return self._rows.list(State(state), limit)

    def retry(self, row_id: str) -> None:
        """Hand a failed row over again. Raises NotFound if there is no failed row of that id."""
        self._rows.retry(row_id, self._checks.now())
        self.wake()

    def discard(self, row_id: str) -> None:
        """Delete a failed row. Raises NotFound if there is no failed row of that id."""
        self._rows.discard(row_id)

    def _give_back(self, *, is_last: bool) -> None:
        """Give back what a relay's thread holds between two passes, for good if it ends."""

    def _creation(self, draft: TaskDraft | None, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the row that creates a task. Raises InvalidInput."""
        note_change("outbox.create")
        if draft is not None and fields:
            raise InvalidInput(next(iter(fields)), "is given beside a draft", "Give a draft or fields.")
        now = self._checks.now()
        prepared = self._checks.prepare(draft, fields, now)
        content = json.dumps(to_content(prepared), ensure_ascii=True)
        return new_row(RowAction.CREATE, str(prepared.id), content, now)

    def _cancellation(self, task_id: str) -> dict[str, Any]:
        """Return the row that cancels a task. Raises InvalidInput if no task can have that id."""
        note_change("outbox.cancel")
        TaskDraft.of(id=task_id, handler="any")
        return new_row(RowAction.CANCEL, task_id, "", self._checks.now())
