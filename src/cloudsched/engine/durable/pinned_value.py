"""Values that an execution keeps as they were when it first asked for them, such as the version of a stored script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.journal import StepKind, StepStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.durable.journal_cursor import JournalCursor


def pin_value(cursor: JournalCursor, name: str, load: Callable[[], Any]) -> Any:  # noqa: ANN401 - any JSON
    """Return a value that is loaded once, and recorded together with what follows: by itself it costs no commit.

    What `load` raises is raised, and nothing is recorded.
    """
    number, entry = cursor.next_entry(StepKind.STEP, name)
    if entry is None:
        fields = cursor.results.store(number, load(), is_stored_elsewhere=False)
        started = cursor.new_entry(number, StepKind.STEP, name)
        entry = cursor.put(started, status=StepStatus.SUCCEEDED, finished_at=cursor.clock.now(), **fields)
    return cursor.results.read(entry)
