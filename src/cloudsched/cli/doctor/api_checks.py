"""Check a deployment through the API: its version, late tasks, and a canary that runs end to end."""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cloudsched.cli.doctor.deployment import CheckResult, ok, skipped, unknown, wrong
from cloudsched.cli.options import explain_unreachable
from cloudsched.client.flow import ApiRequest, Flow
from cloudsched.domain.documents.execution import Execution, ExecutionStatus
from cloudsched.domain.documents.run_counts import LATE
from cloudsched.domain.documents.task import NeedCause, Trouble
from cloudsched.domain.explanation.need_words import NEED_WORDS
from cloudsched.domain.responses.api_responses import CallerInfo
from cloudsched.domain.responses.overview_responses import QueueState
from cloudsched.errors import CloudschedError, Forbidden, NotAllowed, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.client import Client

MAX_BACKLOG_SECONDS = 3600
"""The backlog that a queue may have: what it delivers in an hour. A larger one may still be of later tasks."""
POLL_SECONDS = 0.5
OWNER = "cloudsched-doctor"
QUEUE_ADMIN = 'set QUEUE_ADMIN="on" in infra/config.sh, then infra/deploy.sh and infra/upgrade.sh'
"""How to give the API access to its queues in Cloud Tasks."""


@dataclass(frozen=True, slots=True)
class Canary:
    """The task that the doctor creates, runs and deletes."""

    handler: str | None
    """None for ``remind``, which the examples have, if the API has it."""
    payload: dict[str, Any]
    timeout: timedelta


@dataclass(frozen=True, slots=True)
class CheckedApi:
    """The API that the doctor checks."""

    client: Client
    url: str
    log: str
    """The command that shows its log; empty if it runs on this machine."""
    restart: str
    """The command that brings its code up to date."""


def check_api(api: CheckedApi, canary: Canary | None) -> Iterator[CheckResult]:
    """Check the API, and what stands behind it if it answers and accepts the caller."""
    try:
        answer = api.client.run_flow(_get("/ready"))
    except CloudschedError as error:
        yield wrong("api", f"{api.url} is not ready: {error}", _find_mend(api))
        return
    if hanging := answer.get("hanging"):
        with suppress(CloudschedError):  # this caller may not see which
            hanging = (api.client.run_flow(_get("/v1/overview")).get("sweep") or {}).get("hanging") or hanging
        mend = "give what they wait for a timeout, and restart the process: nothing can stop a thread from outside"
        yield wrong("handlers", hanging, mend)
    broken = [name for name, state in answer.get("circuits", {}).items() if state != "closed"]
    if broken:
        what = f"does not reach {', '.join(broken)}: its circuit breaker is open"
        yield wrong("api", what, "wait a minute, and read the API's log")
    else:
        yield ok("api", f"{api.url} answers, and reaches its store")
    yield _check_version(api)
    try:
        caller = api.client.run_flow(_get_caller())
    except (Unauthenticated, Forbidden) as error:
        yield unknown("access", f"the API does not accept you: {error}", "give --key or --token of an admin")
        return
    yield ok("access", f"you are {caller.role}")
    yield _check_lateness(api, caller)
    if caller.role == "admin":
        yield from _check_queues(api)
    if canary is None:
        yield skipped("canary", "no task was run (--no-canary)")
    elif not caller.may_change:
        yield unknown("canary", f"as {caller.role} you may not create a task", "give --key or --token of an admin")
    else:
        yield _run_canary(api, caller, canary)


def _find_mend(api: CheckedApi) -> str:
    with suppress(CloudschedError):
        if api.client.run_flow(_get("/health")).get("faults"):
            return "read the log of the process that runs the tasks, and restart it"
    return api.log or explain_unreachable(api.url) or "cloudsched dev"


def _get(path: str) -> Flow[dict[str, Any]]:
    return (yield ApiRequest("GET", path, time_limit=20)).read("an object", dict)


def _get_caller() -> Flow[CallerInfo]:
    return (yield ApiRequest("GET", "/v1/caller")).read("a caller", CallerInfo.model_validate)


def _check_version(api: CheckedApi) -> CheckResult:
    own = version("cloudsched")
    try:
        found = api.client.run_flow(_get("/openapi.json"))["info"]["version"]
    except (CloudschedError, KeyError, TypeError) as error:
        return unknown("version", f"the API does not say its version: {error}", api.restart)
    if found != own:
        return wrong("version", f"the API runs cloudsched {found}, and this is {own}", api.restart)
    return ok("version", f"cloudsched {found}, as here")


def _check_lateness(api: CheckedApi, caller: CallerInfo) -> CheckResult:
    """Check that no task is late. The sweep resends a lost dispatch within two minutes."""
    owner = None if caller.sees_all else caller.owner
    for task in api.client.tasks(owner=owner, trouble=Trouble.OVERDUE, trouble_until=caller.now - LATE):
        return wrong(
            "sweep lag", f"task {task.id} {NEED_WORDS[NeedCause.OVERDUE].one}", f"cloudsched tasks why {task.id}"
        )
    return ok("sweep lag", "no task is late")


def _check_queues(api: CheckedApi) -> Iterator[CheckResult]:
    """Check that each queue delivers, and that none has a backlog."""
    try:
        found = api.client.dispatch_queues()
    except CloudschedError as error:
        yield unknown("queues", f"they cannot be looked at: {error}", QUEUE_ADMIN)
        return
    if not found:
        yield skipped("queues", "this API uses no Cloud Tasks")
        return
    stopped = [each for each in found if each.state is not QueueState.RUNNING]
    for each in stopped:
        yield wrong("queues", f"{each.queue} is {each.state}", f"cloudsched admin queues resume {each.queue}")
    deep = [each for each in found if each.depth > each.max_dispatches_per_second * MAX_BACKLOG_SECONDS]
    for each in deep:
        what = f"{each.queue} holds {each.depth:,} dispatches, which takes it over an hour if all are due"
        yield wrong("queues", what, f"cloudsched admin queues rate {each.queue} --per-second N --concurrent N")
    if not stopped and not deep:
        yield ok("queues", f"{len(found)} run, and none holds more dispatches than it delivers in an hour")


def _run_canary(api: CheckedApi, caller: CallerInfo, canary: Canary) -> CheckResult:
    client = api.client
    handler = canary.handler
    payload = canary.payload
    if handler is None:
        if "remind" not in {each.name for each in client.handlers()}:
            return skipped("canary", "there is no handler `remind`; name one with --handler and --payload")
        handler = "remind"
        payload = {"text": "cloudsched doctor"}
    owner = OWNER if caller.sees_all or caller.owner is None else caller.owner
    task_id = f"doctor-{secrets.token_hex(8)}"
    started = datetime.now(UTC)
    try:
        client.create(id=task_id, owner=owner, title="Doctor's canary", handler=handler, payload=payload)
        with suppress(NotAllowed):  # in the local stack it has run by now
            client.trigger(task_id)
        execution = _await_execution(client, task_id, canary.timeout)
    except TimeoutError:
        seconds = canary.timeout.total_seconds()
        what = f"a task with the handler {handler} did not end within {seconds:.0f} s"
        return wrong("canary", what, "docs/start/faq.md")
    except CloudschedError as error:
        return wrong("canary", f"no task could be run: {error}", "name a handler that may run: --handler, --payload")
    finally:
        with suppress(CloudschedError):
            client.delete(task_id)
    seconds = (datetime.now(UTC) - started).total_seconds()
    if execution.status is not ExecutionStatus.SUCCEEDED:
        why = execution.error.message if execution.error else "its record has no error"
        what = f"a task with the handler {handler} ended {execution.status.value}: {why}"
        return wrong("canary", what, f"cloudsched run {handler}")
    return ok("canary", f"a task with the handler {handler} was created, ran and was deleted, in {seconds:.1f} s")


def _await_execution(client: Client, task_id: str, timeout: timedelta) -> Execution:
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        for execution in client.executions(task_id):
            if execution.status.is_final:
                return execution
        if time.monotonic() >= deadline:
            raise TimeoutError
        time.sleep(POLL_SECONDS)
