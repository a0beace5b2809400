"""A worker by the client's methods, over a network that loses answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from tests.client.harness import GREET, Flaky
from tests.instants import about
from tests.web.callers import MINUTE, SECOND
from werkzeug.wrappers import Response

from cloudsched.client import Client, flow, task_inquiries
from cloudsched.client import client as client_module
from cloudsched.domain.documents.execution import ExecutionStatus, ProgressNote
from cloudsched.domain.documents.log_lines import LogLine, RunLog
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.transitions.notices import InboxMessage
from cloudsched.errors import InvalidInput, LeaseLost, NotFound, Unavailable
from cloudsched.features.pull.fields import Pull
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api

SOON = 5 * MINUTE


class Frames(BaseModel):
    count: int


@dataclass(frozen=True)
class Clock:
    """Stands for `time` in the client alone: what its server's threads wait for, and how long, stays as it is."""

    sleep: Callable[[float], object]
    monotonic: Callable[[], float] = time.monotonic

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let both clients use it."""

        async def sleep(seconds: float) -> None:
            self.sleep(seconds)

        monkeypatch.setattr(task_inquiries, "time", self)
        monkeypatch.setattr(flow, "time", self)
        monkeypatch.setattr(client_module, "asyncio", SimpleNamespace(sleep=sleep))


@pytest.fixture
def task_id(client: Client, sim: Simulation) -> str:
    made = client.create(**GREET, pull="gpu", retry={"maxRetries": 5}, schedule="PT5M").id
    sim.advance(SOON)
    return made


def test_a_worker_claims_renews_and_completes(client: Client, sim: Simulation, task_id: str) -> None:
    """A run is claimed, renewed and completed; the client that created the task waits for its result."""
    waiting = client.get(task_id)
    assert (waiting.pull, waiting.offered_at) == (Pull(queue="gpu"), about(sim.now))
    assert client.claim("gpu", handlers=["other"]) == []
    (claim,) = client.claim("gpu", worker="box", skills=["cuda"], handlers=["greet"], limit=5)
    assert (claim.task.id, claim.task.payload, claim.attempt) == (task_id, {"name": "Ada"}, 1)
    assert task_id in repr(claim)
    assert claim.lease_token not in repr(claim) + str(claim), "whoever prints a claim prints no secret"
    now = about(sim.now)
    assert (claim.scheduled_for, claim.started_at, claim.lease_until) == (now, now, about(sim.now + SOON))
    known = {field.alias for field in Task.model_fields.values()}
    whole = Task.model_validate({name: value for name, value in claim.task_data.items() if name in known})
    assert (whole.handler, whole.owner, whole.created_at) == ("greet", "ada", claim.task.created_at)
    with pytest.raises(TimeoutError):
        client.wait(task_id, timedelta(0))
    sim.advance(4 * MINUTE)
    beat = client.heartbeat(claim, ["half", ProgressNote(at=claim.started_at, text="more")])
    assert (beat.lease_until, beat.is_cancelled) == (about(sim.now + SOON), False)
    done = client.complete(claim, Frames(count=7), notices=[InboxMessage("Rendered", "7 frames")], queries=1, tokens=2)
    assert (done.status, done.offered_at) == (TaskStatus.COMPLETED, None)
    shown = client.get(task_id)
    assert done == shown.model_copy(update={"last_result": None})
    assert shown.last_result == {"count": 7}
    record = client.wait(task_id, timedelta(0))
    assert (record.content, record.queries, record.tokens, record.attempts[0].worker) == ({"count": 7}, 1, 2, "box")
    assert [(step.at, step.text) for step in record.progress] == [(about(sim.now), "half"), (claim.started_at, "more")]
    assert [message.title for message in client.inbox("ada")] == ["Rendered"]


def test_what_a_worker_logs_is_sent_and_kept(client: Client, sim: Simulation, task_id: str) -> None:
    """With each of the four calls: texts, whole lines, or the latest of many; the claim says whether it is kept."""

    def read() -> list[tuple[str, str, int]]:
        (record,) = client.executions(task_id)
        return [(line.text, line.level, line.attempt) for line in client.logs(task_id, record.id).lines]

    (claim,) = client.claim("gpu")
    assert claim.logs is not None
    assert (claim.logs.level, claim.logs.bytes_left) == ("INFO", claim.logs.max_bytes)
    line = LogLine(at=sim.now, level="WARNING", logger="gpu", text="hot", attempt=7)
    client.heartbeat(claim, logs=["loading"])
    client.heartbeat(claim)
    assert read() == [("loading", "INFO", 1)]
    client.release(claim, logs=["loading", line])
    (claim,) = client.claim("gpu")
    client.fail(claim, "E", "m", retry_after=timedelta(0), logs=(text for text in ("again",)))
    (claim,) = client.claim("gpu")
    client.complete(claim, logs=RunLog(lines=(line,), omitted_lines=2))
    assert read() == [("loading", "INFO", 1), ("hot", "WARNING", 1), ("again", "INFO", 1), ("hot", "WARNING", 2)]
    (record,) = client.executions(task_id)
    assert client.logs(task_id, record.id).omitted_lines == 2


def test_the_run_of_an_ended_task_is_awaited(
    client: Client, url: str, task_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that is cancelled while a worker runs it has its result when that has ended."""
    (claim,) = client.claim("gpu")
    assert client.cancel(task_id).status is TaskStatus.CANCELLED
    with pytest.raises(TimeoutError):
        client.wait(task_id, timedelta(0))
    with Client(url) as worker, ThreadPoolExecutor(1) as thread:
        Clock(lambda _: thread.submit(worker.complete, claim, 7).result()).install(monkeypatch)
        record = client.wait(task_id, MINUTE)
    assert (record.status, record.content) == (ExecutionStatus.SUCCEEDED, 7)


def test_fail_release_and_cancel_are_recorded(client: Client, sim: Simulation, task_id: str) -> None:
    """Each way to end an attempt has its method and its record."""

    def last_status() -> tuple[ExecutionStatus, str | None]:
        (record,) = client.executions(task_id)
        return record.status, record.error.message if record.error else record.message

    (claim,) = client.claim("gpu")
    client.release(claim, "no driver", progress=["looked"])
    assert last_status() == (ExecutionStatus.RETRYING, "no driver")
    (claim,) = client.claim("gpu")
    assert (claim.attempt, [step.text for step in claim.progress]) == (1, ["looked"])
    client.release(claim, after=MINUTE)
    assert client.claim("gpu") == []
    sim.advance(MINUTE)
    (claim,) = client.claim("gpu")
    client.fail(claim, "GpuError", "hot", traceback="line 1", retry_after=30 * SECOND, tokens=5)
    assert last_status() == (ExecutionStatus.RETRYING, "hot")
    sim.advance(30 * SECOND)
    (claim,) = client.claim("gpu")
    assert claim.attempt == 2
    client.cancel(task_id)
    assert client.heartbeat(claim).is_cancelled
    client.complete(claim, status="CANCELLED", message="stopped")
    assert last_status()[0] is ExecutionStatus.CANCELLED
    other = client.create(**GREET, pull="gpu").id
    sim.advance(SOON)
    (claim,) = client.claim("gpu")
    assert client.fail(claim, "E", "never", is_final=True).status is TaskStatus.FAILED
    client.delete(other)
    with pytest.raises(NotFound):
        client.heartbeat(claim)


@pytest.mark.parametrize("is_lost", [True, False], ids=["after it was done", "before"])
@pytest.mark.parametrize("verb", ["heartbeat", "complete", "fail", "release"])
def test_idempotent_requests_are_retried(
    client: Client, flaky: Flaky, waits: list[float], task_id: str, verb: str, *, is_lost: bool
) -> None:
    """A request whose response is lost, before or after it took effect, is sent again; it takes effect once.

    By the time that a release is repeated, another worker may have claimed what it gave back.
    """
    (claim,) = client.claim("gpu")
    flaky.loses = is_lost
    flaky.fail(503, 502)
    flaky.asked.clear()
    if verb == "heartbeat":
        assert client.heartbeat(claim).lease_until == about(claim.lease_until)
    elif verb == "complete":
        assert client.complete(claim, 7).status is TaskStatus.COMPLETED
    elif verb == "fail":
        assert client.fail(claim, "E", "m").status is TaskStatus.ACTIVE
    else:
        client.release(claim)
    assert len(flaky.asked) == 3
    assert len(waits) <= 2
    (record,) = client.executions(task_id)
    assert len(record.attempts) == (1 if verb in {"complete", "fail"} else 0)
    if verb == "release":
        assert client.get(task_id).offered_at
        assert client.claim("gpu")
        with pytest.raises(LeaseLost):
            client.release(claim)


def test_a_claim_is_not_retried(
    client: Client, flaky: Flaky, sim: Simulation, waits: list[float], task_id: str
) -> None:
    """A claim whose response was lost is not repeated, which might claim more: its lease has to end first."""
    flaky.asked.clear()
    flaky.loses = True
    flaky.fail(503)
    with pytest.raises(Unavailable):
        client.claim("gpu")
    assert (len(flaky.asked), waits) == (1, [])
    assert client.get(task_id).is_running
    assert client.claim("gpu") == []
    sim.advance(SOON + MINUTE)
    (claim,) = client.claim("gpu")
    assert claim.attempt == 2


def test_an_unreadable_claim_is_released_and_the_others_returned(
    client: Client, flaky: Flaky, sim: Simulation, task_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A claim that cannot be parsed is released, at no cost and for a minute; the others are returned."""
    sim.advance(SECOND)  # what is due at one instant is offered in the order of the ids
    other = client.create(**GREET, pull="gpu").id
    sim.advance(SOON)

    def answer_as_newer_api() -> Response:
        content = json.loads(serve_api(sim.app, flaky.asked[-1]).get_data())
        assert [claim["task"]["id"] for claim in content["claims"]] == [task_id, other]
        content["claims"][0]["task"]["priority"] = "ULTRA"
        return Response(json.dumps({"claims": ["none", {}, *content["claims"]]}))

    flaky.fails = [answer_as_newer_api]
    assert [claim.task.id for claim in client.claim("gpu", limit=5)] == [other]
    assert "is the API newer than this client?" in caplog.text
    (released,) = [vars(record) for record in caplog.records if vars(record).get("action") == "claim_unreadable"]
    assert (released["action"], released["taskId"]) == ("claim_unreadable", task_id)
    assert client.claim("gpu") == []
    sim.advance(MINUTE)
    (claim,) = client.claim("gpu")
    assert (claim.task.id, claim.attempt) == (task_id, 1)


@pytest.mark.parametrize("content", [float("nan"), {"a": 2**63}, "x" * 600_000, object(), "\ud800"])
def test_a_result_that_cannot_be_stored_raises_at_once(
    client: Client, flaky: Flaky, task_id: str, content: object
) -> None:
    """It is the caller's mistake, not the network's: nothing is sent, and the claim stays valid."""
    (claim,) = client.claim("gpu")
    flaky.asked.clear()
    with pytest.raises(InvalidInput) as caught:
        client.complete(claim, content)
    assert caught.value.field.startswith("content")
    assert flaky.asked == []
    assert client.complete(claim, "ü" * 200_000).id == task_id


def test_wait_polls_less_often_the_longer_it_takes(
    client: Client, task_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waits grow to ten times the first, and their sum is the timeout."""
    waited: list[float] = []
    Clock(waited.append, lambda: 1000.0 + sum(waited)).install(monkeypatch)
    with pytest.raises(TimeoutError):
        client.wait(task_id, 5 * MINUTE, every=SECOND)
    assert waited[:-1] == sorted(waited[:-1])
    assert (waited[0], max(waited)) == (1, 10)
    assert sum(waited) == pytest.approx(300)
    assert len(waited) < 60
