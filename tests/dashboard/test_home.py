"""Home: what needs somebody is there with what resolves it, and what needs nobody is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cloudsched.dashboard import home_view
from cloudsched.dashboard.attention import SOON, build_needs
from cloudsched.dashboard.home_view import LATE, build_health
from cloudsched.dashboard.offered_verbs import make_retry_question
from cloudsched.dashboard.visit import UTC_ZONE, Visit

NOW = datetime(2027, 3, 27, 14, 42, 7, tzinfo=UTC)
NOTHING: dict[str, Any] = {"failed": [], "tasks": {}, "startable": [], "paused": [], "waits": []}


def visit(*, may_change: bool = True, owner: str | None = None) -> Visit:
    return Visit(NOW, UTC_ZONE, {}, may_change=may_change, role="admin", owner=owner, is_local=True)


def ago(**distance: float) -> str:
    return (NOW - timedelta(**distance)).isoformat()


def execution(task: str, **fields: object) -> dict[str, Any]:
    made = {"id": f"e-{task}", "taskId": task, "title": f"Title of {task}", "status": "FAILED", "attempts": []}
    return {**made, "scheduledFor": ago(hours=1), "startedAt": ago(hours=1), "finishedAt": ago(hours=1), **fields}


def task(name: str, **fields: object) -> dict[str, Any]:
    made = {"id": name, "title": f"Title of {name}", "status": "ACTIVE", "handler": "h"}
    return {**made, "allowedVerbs": ["edit", "resume"], **fields}


def test_who_has_recovered_needs_nobody() -> None:
    """A task whose latest execution succeeded is not listed, nor one that is gone; one that still fails is, once."""
    failed = [execution("bad"), execution("bad", id="e-older"), execution("well"), execution("gone")]
    tasks = {"bad": task("bad", consecutiveFailures=3), "well": task("well", consecutiveFailures=0), "gone": None}
    [need] = build_needs({**NOTHING, "failed": failed, "tasks": tasks, "startable": ["bad", "well"]}, [], visit())
    assert (need.title, need.what) == ("Title of bad", "failed, 3 in a row,")
    assert need.href == "tasks/bad/executions/e-bad"
    assert (need.task_id, need.execution_id) == ("bad", "e-bad")
    assert need.retry_question is not None


def test_retrying_is_asked_with_what_the_handler_gets() -> None:
    """The task's own payload; of a run by hand, whose payload lists leave out, where that is shown."""
    tasks = {name: task(name, consecutiveFailures=1, payload={"of": name}) for name in ("plain", "by-hand")}
    failed = [execution("plain"), execution("by-hand", trigger="MANUAL")]
    answer = {**NOTHING, "failed": failed, "tasks": tasks, "startable": [*tasks]}
    plain, by_hand = [need.retry_question for need in build_needs(answer, [], visit())]
    assert plain is not None
    assert by_hand is not None
    assert '"of": "plain"' in plain.payload
    assert not by_hand.payload
    assert "the payload of that run, which its page shows" in by_hand.handler_gets
    both = [make_retry_question(tasks["by-hand"], {**failed[1], **own}) for own in ({}, {"payload": {"of": "run"}})]
    assert ['"of": "by-hand"' in both[0].payload, '"of": "run"' in both[1].payload] == [True, True]


@pytest.mark.parametrize("change", [{"status": "CANCELLED"}, {"id": "of-servers"}])
def test_a_retry_that_would_be_refused_is_not_offered(change: dict[str, str]) -> None:
    """For a cancelled task, and for one that the caller may not start; what failed is listed all the same."""
    bad = task("bad", consecutiveFailures=1, **change)
    answer = {**NOTHING, "failed": [execution("bad")], "tasks": {"bad": bad}}
    [need] = build_needs({**answer, "startable": ["bad"] if "status" in change else []}, [], visit())
    assert need.retry_question is None


def test_what_failures_have_paused_is_resumed_and_not_retried() -> None:
    """It stands there once, with the verb that resolves it; what somebody paused by hand is not there."""
    paused = [task("stuck", status="PAUSED", consecutiveFailures=2), task("resting", status="PAUSED")]
    answer = {**NOTHING, "failed": [execution("stuck")], "tasks": {"stuck": paused[0]}, "paused": paused}
    [need] = build_needs(answer, [], visit())
    assert need.what == "is paused after 2 failures in a row"
    assert need.retry_question is None
    assert need.resume_question


@pytest.mark.parametrize(("gives_up_in", "is_listed"), [(timedelta(hours=1), True), (SOON * 2, False)])
def test_a_wait_needs_somebody_when_it_gives_up_soon(gives_up_in: timedelta, is_listed: bool) -> None:  # noqa: FBT001
    """One that gives up in a fortnight does not, yet."""
    step = {"number": 1, "kind": "EVENT", "name": "approved", "status": "WAITING", "startedAt": ago(hours=3)}
    old = {**step, "status": "SUCCEEDED", "dueAt": ago(hours=1)}
    waits = [
        execution("close", status="SUSPENDED", steps=[old, {**step, "dueAt": (NOW + gives_up_in).isoformat()}]),
        execution("for-ever", status="SUSPENDED", steps=[step]),
    ]
    needs = build_needs({**NOTHING, "waits": waits}, [], visit())
    assert [need.title for need in needs] == ["Title of close"] * is_listed
    assert [need.what for need in needs] == ["waits for the event approved, and gives up"] * is_listed


def test_a_queue_at_which_nobody_listens_needs_somebody() -> None:
    """If something waits in it; one that is served or empty needs nobody."""
    queues = [
        {"queue": "gpu", "skill": "cuda", "waiting": 2, "workers": 0, "firstSince": ago(minutes=40)},
        {"queue": "print", "waiting": 2, "workers": 1},
        {"queue": "idle", "waiting": 0, "workers": 0},
    ]
    [need] = build_needs(NOTHING, queues, visit())
    assert (need.title, need.href) == ("gpu", "queues")
    assert "2 runs wait for a worker with the skill cuda" in need.detail


def test_who_may_only_look_is_offered_no_verb() -> None:
    """What needs somebody is shown to them all the same."""
    bad = task("bad", consecutiveFailures=1, allowedVerbs=[])
    paused = task("stuck", status="PAUSED", consecutiveFailures=1, allowedVerbs=[])
    answer = {**NOTHING, "failed": [execution("bad")], "tasks": {"bad": bad}, "paused": [paused]}
    needs = build_needs(answer, [], visit(may_change=False))
    assert [(need.retry_question, need.resume_question) for need in needs] == [(None, "")] * 2


SWEEP = {"finishedAt": ago(seconds=20), "lag": 20, "examined": 3, "dispatched": 0, "unsent": 0, "failed": 0}


@pytest.mark.parametrize(
    ("health", "counts", "words"),
    [
        ({"circuits": {}}, {"sweep": SWEEP}, ["answers", "on time", "runs"]),
        ({}, {"sweep": SWEEP}, ["does not answer", "on time", "runs"]),
        ({"circuits": {"Cloud Tasks": "open"}}, {"sweep": SWEEP}, ["answers", "has failed", "runs"]),
        (
            {"circuits": {"Cloud Tasks": "closed"}},
            {"overdueSince": ago(minutes=1)},
            ["answers", "on time", "has not run"],
        ),
        ({"circuits": {}}, {"overdueSince": ago(hours=1), "sweep": SWEEP}, ["answers", "late", "runs"]),
        ({"circuits": {}}, {"sweep": {**SWEEP, "lag": LATE.total_seconds() + 1}}, ["answers", "on time", "is late"]),
        ({"circuits": {}}, {"sweep": {**SWEEP, "unsent": 4}}, ["answers", "on time", "has trouble"]),
        ({"circuits": {}}, {"sweep": {**SWEEP, "failed": 1}}, ["answers", "on time", "has trouble"]),
    ],
)
def test_store_queue_and_sweep_are_each_said_to_be_well_or_not(
    health: dict[str, Any], counts: dict[str, Any], words: list[str]
) -> None:
    """One line each; whatever is not well has the shape and colour of failures."""
    rows = build_health(health, counts, visit())
    assert [row.part for row in rows] == ["Store", "Queue", "Sweep"]
    for row, word in zip(rows, words, strict=True):
        assert row.status.word.startswith(word)
        is_bad = word in {"does not answer", "has failed", "late", "is late", "has trouble"}
        assert (row.status.shape == "fail") == is_bad


def test_threads_that_cannot_work_are_named() -> None:
    """Their process is not ready then, so nothing is said of its store; one that is alive and not ready has none."""
    faults = {"cloudsched-sweep": "has failed once: MemoryError"}
    told = {"status": "ok", "circuits": {}, "faults": faults, "problem": "This process goes on trying."}
    rows = build_health(told, {"sweep": SWEEP}, visit())
    assert [row.part for row in rows] == ["Queue", "Sweep", "Process"]
    assert "cloudsched-sweep has failed once: MemoryError" in rows[-1].detail
    assert rows[-1].status.shape == "fail"
    [store, *_] = build_health({**told, "faults": {}, "problem": "The disk is full."}, {"sweep": SWEEP}, visit())
    assert (store.status.word, store.detail) == ("does not answer", "The disk is full.")


def test_users_are_not_told_of_a_sweep_that_they_cannot_see() -> None:
    """The API says nothing of it to those who see their own tasks only."""
    assert [row.part for row in build_health({"circuits": {}}, {}, visit(owner="ada"))] == ["Store", "Queue"]


def answer(**changes: object) -> dict[str, Any]:
    base = {
        "executions": {"executions": []},
        "open": [],
        "due": {"occurrences": []},
        "queues": [],
        "needs": NOTHING,
        "counts": {},
        "health": {},
    }
    return {**base, **changes}


def test_when_there_is_too_much_to_list_the_counts_stand_in() -> None:
    """The numbers are the API's counts by hour, never those of the first page."""
    hours = [
        {"start": (NOW - timedelta(hours=each)).isoformat(), "failed": 7, "others": 700} for each in range(11, -1, -1)
    ]
    counts = {"hours": hours, "starts": [{"scheduledFor": ago(hours=1), "lateness": 4.2}], "open": {"RUNNING": 5000}}
    first = {"executions": [execution("t", status="SUCCEEDED")], "nextPageToken": "more"}
    page = home_view.build(answer(executions=first, counts=counts), visit())
    assert "8,400 ended well and 84 failed" in page.strip_text
    assert "5,000 open" in page.sentence
    assert "4.2" in page.lateness_text
    assert page.more_running == 5000 - 8
    whole = home_view.build(answer(executions={"executions": first["executions"]}, counts=counts), visit())
    assert "1 ended well and 0 failed" in whole.strip_text


def test_nothing_wrong_says_when_the_last_failure_was() -> None:
    """So that an empty list can be believed."""
    needs = {**NOTHING, "failed": [execution("well", scheduledFor=ago(days=3))], "tasks": {"well": task("well")}}
    page = home_view.build(answer(needs=needs), visit())
    assert not page.needs
    assert page.calm.replace("\N{NO-BREAK SPACE}", " ") == "Nothing needs you. The last failure was 3 d ago."
    assert home_view.build(answer(), visit()).calm == "Nothing needs you."


def test_nothing_due_says_until_when() -> None:
    """An empty list of what is due names the first instant after it; without any, that nothing is due."""
    assert home_view._write_not_due([], visit()) == "Nothing is due."  # noqa: SLF001 - its words
    said = home_view._write_not_due([task("t", nextExecutionTime="2027-04-01T09:00:00Z")], visit())  # noqa: SLF001
    assert said.replace("\N{NO-BREAK SPACE}", " ") == "Nothing is due until Thu 01 Apr 2027 09:00 +0000."
