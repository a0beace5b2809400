"""Read the tasks that may still run, and their open runs: from an API, or from a data folder, even one in use.

Both are read page by page. Of an API, only the ids of open runs are kept.
"""

from __future__ import annotations

from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, cast

from cloudsched.adapters.blobs import FileBlobs, results_of
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.client.flow import fetch
from cloudsched.domain.documents.execution import OPEN_STATUSES, Run
from cloudsched.domain.documents.journal import JournalEntry
from cloudsched.domain.documents.task import PublicTask, Task
from cloudsched.domain.responses.api_responses import CallerInfo
from cloudsched.engine.code_check.compare import CodeReport, StoredRun, StoredTask
from cloudsched.engine.code_check.rehearsal import UnreadableBlobs
from cloudsched.engine.code_check.stored_work import StoredWork
from cloudsched.engine.ports.search import UNFINISHED_STATUSES
from cloudsched.errors import Forbidden, Misconfigured, NotFound
from cloudsched.local.backup import require_own_file
from cloudsched.local.data_folder import STORE_FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from cloudsched.client.client import Client
    from cloudsched.engine.ports.blobs import Blobs


def read_folder(data: Path, report: CodeReport) -> Iterator[StoredTask]:
    """Yield the tasks of a data folder. Nothing is written, and the folder is not locked. Raises Misconfigured."""
    file = data / STORE_FILE_NAME
    if not file.is_file():
        raise Misconfigured(f"There is no {file}: name the folder that `cloudsched serve --data`, or your app, uses.")
    require_own_file(data)
    with closing(SqliteStore(file, is_read_only=True)) as store:
        yield from StoredWork(store, FileBlobs(results_of(file)), report).read()


def read_api(client: Client) -> Iterator[StoredTask]:
    """Yield the tasks of a deployment. Raises Forbidden for callers who do not see all tasks."""
    caller = client.run_flow(fetch("a caller", CallerInfo, "GET", "/v1/caller"))
    if not caller.sees_all:
        raise Forbidden(
            f"As {caller.role} you see only some of the tasks. Give the key of a viewer or an admin: --key, or "
            "CLOUDSCHED_KEY."
        )
    open_runs: dict[str, list[str]] = {}
    for status in OPEN_STATUSES:
        for execution in client.find_executions(status=status.value):
            open_runs.setdefault(execution.task_id, []).append(execution.id)
    for unfinished in UNFINISHED_STATUSES:
        for view in client.tasks(status=unfinished.value):
            yield _with_runs(client, view, open_runs.pop(view.id, ()))
    for task_id, ids in open_runs.items():  # of tasks that have ended
        with suppress(NotFound):
            yield _with_runs(client, client.get(task_id), ids)


def _with_runs(client: Client, view: PublicTask, ids: Iterable[str]) -> StoredTask:
    task = Task.build(**{name: getattr(view, name) for name in PublicTask.model_fields})
    return StoredTask(task, {each: partial(_read_run, client, task, each) for each in ids}, has_events=False)


def _read_run(client: Client, task: Task, execution_id: str) -> StoredRun | None:
    try:
        execution = client.execution(task.id, execution_id)
    except NotFound:
        return None
    if execution.status.is_final:
        return None
    began = task.model_copy(update={"handler": execution.handler or task.handler})
    run = Run(
        execution_id=execution.id,
        scheduled_for=execution.scheduled_for,
        trigger=execution.trigger,
        attempt=execution.attempt_count + 1,
        due_at=execution.next_attempt_at or execution.scheduled_for,
        started_at=execution.started_at,
        steps=len(execution.steps),
        payload=execution.payload,
    )
    entries = [JournalEntry.from_record(step, execution.id) for step in execution.steps]
    return StoredRun(began, run, entries, cast("Blobs", UnreadableBlobs()))
