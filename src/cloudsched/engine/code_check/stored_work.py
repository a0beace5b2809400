"""Read the tasks of a store that may still run, and their open runs, page by page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.execution import OPEN_STATUSES
from cloudsched.domain.documents.task import FINAL_STATUSES, Task
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.code_check.compare import CodeReport, NameComparison, StoredRun, StoredTask, describe
from cloudsched.engine.durable.archive import JournalArchive
from cloudsched.engine.ports.search import UNFINISHED_STATUSES, ExecutionQuery, TaskQuery
from cloudsched.engine.storage.pages import MAX_PAGE, Page, iterate_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.blobs import Blobs
    from cloudsched.engine.ports.store import Store

log: Final = own_logger(__name__)


class StoredWork:
    """The work that a store has."""

    def __init__(self, store: Store, blobs: Blobs, report: CodeReport) -> None:
        self._store = store
        self._blobs = blobs
        self._archive = JournalArchive(store, blobs)
        self._report = report

    def read(self) -> Iterator[StoredTask]:
        """Yield the tasks that have not ended, then ended ones with an open run."""
        for status in UNFINISHED_STATUSES:
            yield from self._follow(partial(self._store.list_tasks, TaskQuery(owner=None, status=status)))
        for position in OPEN_STATUSES:
            listing = partial(self._store.search.list_open, ExecutionQuery(owner=None), position)
            yield from (each for each in self._follow(listing) if each.task.status in FINAL_STATUSES)

    def _follow(self, read: Callable[..., Page[Task]]) -> Iterator[StoredTask]:
        for page in iterate_pages(lambda token: read(limit=MAX_PAGE, page_token=token)):
            for _ in range(page.unreadable):
                self._report.note_unknown("a document is damaged, or of a newer version")
            for task in page.items:
                ids = [each.execution_id for each in task.runs]
                yield StoredTask(task, {each: partial(self._read_run, task.id, each) for each in ids})

    def _read_run(self, task_id: str, execution_id: str) -> StoredRun | None:
        stored = self._store.load(task_id)
        if stored is None or (run := stored.task.find_run(execution_id)) is None:
            return None
        entries = self._archive.load(task_id, run) if run.steps else ()
        return StoredRun(stored.task.as_begun(run), run, entries, self._blobs)


def log_differences(engine: EngineContext) -> None:
    """Log what this code lacks of the names that stored work has. None of its handlers' and models' code runs.

    It runs beside the work: one old task must not keep all others from running, after a crash least of all.
    """
    comparison = NameComparison(engine.registry)
    report = comparison.report
    about = {"action": "compared"}
    try:
        for each in StoredWork(engine.store, engine.blobs(), report).read():
            comparison.look(each)
    except Exception as error:  # noqa: BLE001 - such as a store that is closed, since the process stops
        log.info("what is stored was not compared with the code: %s", error, extra=about)
        return
    for line in describe(report)[:-1]:
        log.warning("%s", line, extra=about)
    if report.tasks:
        log.info(
            "compared the names in %d tasks and %d open runs with the code", report.tasks, report.runs, extra=about
        )
