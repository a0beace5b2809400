"""Read the tasks that may still run, and their open runs: from an API, or from a data folder, even one in use.

Both are read page by page. Of an API, only the ids of open runs are kept.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cloudsched.adapters.blobs import FileBlobs, results_of
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.client.flow import ApiRequest, Flow
from cloudsched.domain.documents.execution import OPEN_STATUSES, Execution, Run
from cloudsched.domain.documents.journal import JournalEntry
from cloudsched.domain.documents.task import PublicTask, Task
from cloudsched.domain.responses.api_responses import CallerInfo
from cloudsched.engine.code_check.compare import NOWHERE, CodeReport, OpenRun, StoredRun, StoredTask
from cloudsched.engine.code_check.rehearsal import UnreadableBlobs
from cloudsched.engine.code_check.stored_work import StoredWork
from cloudsched.engine.ports.search import UNFINISHED_STATUSES
from cloudsched.errors import Forbidden, Misconfigured, NotFound
from cloudsched.local.backup import require_own_file
from cloudsched.local.data_folder import STORE_FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cloudsched.client.client import Client

MAX_OPEN = 200_000
"""The largest number of open runs whose ids are kept, in about 50 MB."""


def read_folder(data: Path, report: CodeReport) -> Iterator[StoredTask]:
    """Yield the tasks of a data folder. Nothing is written, and the folder is not locked. Raises Misconfigured."""
    file = data / STORE_FILE_NAME
    if not file.is_file():
        raise Misconfigured(f"There is no {file}: name the folder that `cloudsched serve --data`, or your app, uses.")
    require_own_file(data)
    store = SqliteStore(file, is_read_only=True)
    try:
        yield from StoredWork(store, FileBlobs(results_of(file)), report).read()
    finally:
        store.close()


def read_api(client: Client, report: CodeReport) -> Iterator[StoredTask]:
    """Yield the tasks of a deployment. Raises Forbidden for callers who do not see all tasks."""
    caller = client.run_flow(_get_caller())
    if not caller.sees_all:
        raise Forbidden(
            f"As {caller.role} you see only some of the tasks. Give the key of a viewer or an admin: --key, or "
            "CLOUDSCHED_KEY."
        )
    yield from _DeployedWork(client, report).read()


class _DeployedWork:
    """The stored work of a deployment, read through its API."""

    def __init__(self, client: Client, report: CodeReport) -> None:
        self._client = client
        self._open_runs: dict[str, list[str]] = {}
        for status in OPEN_STATUSES:
            for number, execution in enumerate(client.find_executions(status=status.value)):
                if number == MAX_OPEN:
                    report.note_unknown(f"more than {MAX_OPEN:,} runs are {status.value}", NOWHERE)
                    break
                self._open_runs.setdefault(execution.task_id, []).append(execution.id)

    def read(self) -> Iterator[StoredTask]:
        """Yield the tasks that have not ended, then the others that have an open run."""
        for status in UNFINISHED_STATUSES:
            yield from map(self._with_runs, self._client.tasks(status=status.value))
        for task_id in list(self._open_runs):
            try:
                yield self._with_runs(self._client.get(task_id))
            except NotFound:
                continue

    def _with_runs(self, view: PublicTask) -> StoredTask:
        task = Task.build(**{name: getattr(view, name) for name in PublicTask.model_fields})
        ids = dict.fromkeys(self._open_runs.pop(task.id, ()))
        runs = [OpenRun(each, partial(_read_run, self._client, task, each)) for each in ids]
        return StoredTask(task, runs, has_events=False)


def _get_caller() -> Flow[CallerInfo]:
    return (yield ApiRequest("GET", "/v1/caller")).read("a caller", CallerInfo.model_validate)


def _read_run(client: Client, task: Task, execution_id: str) -> StoredRun | None:
    try:
        execution = client.execution(task.id, execution_id)
    except NotFound:
        return None
    if execution.status.is_final:
        return None
    payload = task.payload if execution.payload is None else execution.payload
    began = {"handler": execution.handler or task.handler, "payload": payload}
    entries = [JournalEntry.from_record(step, execution.id) for step in execution.steps]
    return StoredRun(task.model_copy(update=began), _make_run(execution), entries, UnreadableBlobs())


def _make_run(execution: Execution) -> Run:
    return Run(
        execution_id=execution.id,
        scheduled_for=execution.scheduled_for,
        trigger=execution.trigger,
        attempt=execution.attempt_count + 1,
        due_at=execution.next_attempt_at or execution.scheduled_for,
        started_at=execution.started_at,
        steps=len(execution.steps),
    )
