"""A deployment in a virtual world: the product on a clock that the test moves, in a small model of Google Cloud.

The functions, their log lines and their repairs are the product's own. The model delivers dispatches as Cloud Tasks
does (the queue of the local Cloud Tasks, with the limits of infra/resources.json), calls the sweep each minute, asks
the API six times a minute, and counts what Google's services count, as they document it:

* ``run.googleapis.com/request_count`` leaves out requests that reach no instance: those that Cloud Run refuses, or for
  which no instance starts (cloud.google.com/monitoring/api/metrics_gcp).
* ``cloudtasks.googleapis.com/queue/task_attempt_count`` counts every attempt, by the code of its answer. How a code is
  written there is not documented: ``ok`` and words in what people show. So some
  of those who watch see words, and some numbers.

Some see points a minute after they were counted, some as late as they may be, and some by turns.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from tests.deployables.alerting import Monitoring
from tests.deployables.fake_project import ROOT
from tests.deployables.series import MINUTE, Lateness, Point, at_worst, by_turns, count_line, usually
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request, Response

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.adapters.sqlite.sweep import SqliteSweep
from cloudsched.config.access import Access
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.emulator.model.errors import Code, RpcError
from cloudsched.emulator.model.queue import CloudQueue, QueueConfig
from cloudsched.emulator.model.task import CloudTask as QueuedTask
from cloudsched.emulator.model.task import HttpResult, HttpTarget, RateLimits, RetryConfig
from cloudsched.emulator.model.token_bucket import TokenBucket
from cloudsched.engine.execution.executor import TaskReader
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.storage.known_tasks import KnownTasks
from cloudsched.engine.storage.pages import Page
from cloudsched.errors import QueueUnavailable, StoreUnavailable
from cloudsched.runtime.telemetry import CloudFormatter
from cloudsched.testing import START
from cloudsched.web.functions import TOKEN_HEADER, serve_api, serve_execute, serve_sweep

NAME: Final = "cloudsched"
HANDLERS: Final = 20
TABLE: Final[dict[str, Any]] = json.loads((ROOT / "infra/resources.json").read_text("utf-8"))
WATCHES: Final[dict[Lateness, str]] = {usually: "words", at_worst: "numbers", by_turns: "words"}
"""Who watches: by how late points are seen, and how Cloud Tasks writes its codes."""
_WORDS: Final = {200: "ok", 401: "unauthenticated", 403: "permission_denied", 429: "resource_exhausted"}


class SkewedClock:
    """The functions' clock, which may differ from the true one."""

    def __init__(self, true: ManualClock) -> None:
        self._true = true
        self.error = timedelta(0)

    def now(self) -> datetime:
        return self._true.now() + self.error


_REFUSED = StoreUnavailable("Firestore", "PERMISSION_DENIED: Missing or insufficient permissions.")


class CloudStore(SqliteStore):
    """A store that tells its own time with what it reads, as Firestore does, and may refuse writes, or everything."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._true = clock
        self.sweep = CloudSweep(self)
        self.is_read_only = False
        self.is_refused = False

    def require_granted(self) -> None:
        if self.is_refused:
            raise _REFUSED

    def load(self, task_id: str) -> VersionedTask | None:
        self.require_granted()
        found = super().load(task_id)
        return None if found is None else replace(found, read_at=self._true.now())

    def commit(self, commit: Commit) -> VersionedTask:
        self.require_granted()
        if self.is_read_only:
            raise _REFUSED
        return super().commit(commit)


class CloudSweep(SqliteSweep):
    """Refuses to list what is due if its store refuses everything."""

    def __init__(self, store: CloudStore) -> None:
        super().__init__(store.database, KnownTasks(), lambda _: None)
        self._store = store

    def list_due(self, *arguments: Any, **more: Any) -> Page[Task]:
        self._store.require_granted()
        return super().list_due(*arguments, **more)


class World:
    """A deployment and what watches it.

    Args:
        policies: The alert policies, with the deployment's values.
        metrics: The log-based metrics, the same.
        mounted: The Cloud Run service in which cloudsched is mounted, instead of functions of its own.
    """

    def __init__(self, policies: Mapping[str, Any], metrics: Mapping[str, Any], mounted: str = "") -> None:
        self.clock = ManualClock(START)
        self.functions_clock = SkewedClock(self.clock)
        self.store = CloudStore(self.clock)
        self.queue = _make_queue(self.clock)
        self.failing: set[str] = set()
        """The handlers that raise."""
        self.has_invoker_role = True
        self.executor_status = 200
        """What Cloud Run answers in place of an executor that does not start, if not 200."""
        self.is_api_broken = False
        """Whether each request to the API ends with an error of its own."""
        self.is_sweep_scheduled = True
        self.is_queue_down = False
        self.statuses: Counter[tuple[str, int]] = Counter()
        """What the functions have answered."""
        self.watches = {lateness: Monitoring(policies, lateness) for lateness in WATCHES}
        self._metrics = metrics
        self._mounted = mounted
        self._service = ""
        settings = Settings(secret="s" * 32, executor_url="https://execute.run.app", access=Access(open=True))
        self.app = App(settings, store=self.store, dispatcher=self, clock=self.functions_clock)
        tasks = TaskReader(self.store, self.functions_clock, checks_clock=True, seconds=None, is_alone=False)
        self.app.container.executor._tasks = tasks  # noqa: SLF001 - as by the system's clock
        for number in range(HANDLERS):
            self._add_handler(f"handler-{number}", timedelta(seconds=6 * number))

    def _add_handler(self, name: str, offset: timedelta) -> None:
        """Register a handler, and let it run every two minutes."""

        def run() -> str:
            if name in self.failing:
                raise RuntimeError("it is broken")
            return "done"

        self.app.handler(name)(run)
        self.app.create(
            owner="ada", title=name, handler=name, schedule=Schedule.every(2 * MINUTE, start=START + offset + MINUTE)
        )

    @contextmanager
    def opened(self) -> Iterator[World]:
        """Collect the log while the block runs."""
        collector = _Collector(self._read_line)
        root = logging.getLogger()
        level = root.level
        root.addHandler(collector)
        root.setLevel(logging.INFO)
        try:
            yield self
        finally:
            root.removeHandler(collector)
            root.setLevel(level)
            self.app.close()
            self.store.close()

    def run(self, minutes: int) -> None:
        """Let time pass; whoever watches looks at the end of each minute."""
        for _ in range(minutes):
            end = self.clock.now() + MINUTE
            while (wake_at := self.queue.wake_at()) is not None and wake_at < end:
                self.clock.move_to(wake_at)
                self._deliver_due()
            self.clock.move_to(end)
            if self.is_sweep_scheduled:
                self._call("sweep", lambda request: serve_sweep(self.app, request))
            self._deliver_due()
            for _ in range(6):
                self._call("api", lambda request: serve_api(self.app, request), path="/v1/tasks/none")
            for watch in self.watches.values():
                watch.look(end)

    def points(self) -> list[Point]:
        return [point for points in self.watches[usually].series.points.values() for point in points]

    # ── Cloud Tasks ──────────────────────────────────────────────────────────────────────────────────────────────

    def create(self, message: QueueMessage) -> None:
        if self.is_queue_down:
            raise QueueUnavailable("The queue", "UNAVAILABLE")
        now = self.clock.now()
        target = HttpTarget("https://execute.run.app", headers={TOKEN_HEADER: message.token}, body=message.body)
        try:
            self.queue.add(QueuedTask(message.name, target, max(message.at, now), now), now)
        except RpcError as refused:
            if refused.code is not Code.ALREADY_EXISTS:
                raise QueueUnavailable("The queue", str(refused)) from refused

    def close(self) -> None:
        """Do nothing."""

    def _deliver_due(self) -> None:
        while (sent := next(self.queue.take_due(self.clock.now()), None)) is not None:
            target = sent.task.target
            status = self._call(
                "execute", lambda request: serve_execute(self.app, request), target.body, target.headers
            )
            self._count(
                "cloudtasks.googleapis.com/queue/task_attempt_count", "cloud_tasks_queue", status, queue_id=NAME
            )
            self.queue.finish_attempt(sent, HttpResult(status=status), self.clock.now())

    # ── Cloud Run ────────────────────────────────────────────────────────────────────────────────────────────────

    def _call(
        self,
        function: str,
        serve: Callable[[Request], Response],
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        path: str = "/",
    ) -> int:
        if not self.has_invoker_role and function != "api":
            return 403
        if function == "execute" and self.executor_status != 200:
            return self.executor_status
        service = self._mounted or f"{NAME}-{function}"
        status = 500
        if function != "api" or not self.is_api_broken:
            self._service = service
            own_machine = {"REMOTE_ADDR": "127.0.0.1"}  # Cloud Run's check of callers is the model's, above
            method = "GET" if function == "api" else "POST"
            asked = EnvironBuilder(path, method=method, data=body, headers=Headers(headers), environ_base=own_machine)
            status = serve(Request(asked.get_environ())).status_code
            self._service = ""
        self.statuses[function, status] += 1
        self._count("run.googleapis.com/request_count", "cloud_run_revision", status, service_name=service)
        return status

    # ── Cloud Monitoring ─────────────────────────────────────────────────────────────────────────────────────────

    def _count(self, metric: str, resource: str, status: int, **labels: str) -> None:
        own = {f"resource.labels.{label}": value for label, value in labels.items()}
        own["metric.labels.response_code_class"] = f"{status // 100}xx"
        codes = {"words": _WORDS.get(status, "unavailable"), "numbers": str(status)}
        for lateness, watch in self.watches.items():
            told = own | {"metric.labels.response_code": codes[WATCHES[lateness]]}
            watch.series.add([Point(self.clock.now(), metric, resource, told)])

    def _read_line(self, line: str) -> None:
        if not self._service:
            return
        entry = {
            "resource": {"type": "cloud_run_revision", "labels": {"service_name": self._service}},
            "jsonPayload": json.loads(line),
        }
        points = count_line(self._metrics, NAME, entry, self.clock.now())
        for watch in self.watches.values():
            watch.series.add(points)


class _Collector(logging.Handler):
    """Hands on each line as the deployed functions write it."""

    def __init__(self, read: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(CloudFormatter("demo-project"))
        self._read = read

    def emit(self, record: logging.LogRecord) -> None:
        self._read(self.format(record))


def _make_queue(clock: ManualClock) -> CloudQueue:
    rate, concurrent = TABLE["queues"]["normal"].split("/")
    retries = TABLE["queueRetries"]
    config = QueueConfig(
        RateLimits(float(rate), int(concurrent)),
        RetryConfig(
            max_attempts=retries["maxAttempts"],
            max_retry_duration=_seconds(retries["maxRetryDuration"]),
            min_backoff=_seconds(retries["minBackoff"]),
            max_backoff=_seconds(retries["maxBackoff"]),
            max_doublings=retries["maxDoublings"],
        ),
    )
    return CloudQueue(NAME, config, TokenBucket.full(config.rate_limits, clock.now()))


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=float(text.removesuffix("s")))
