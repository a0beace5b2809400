"""Home: what needs attention is there with what resolves it, and what does not is absent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.dashboard.conftest import NOW, visit
from tests.web.callers import HOUR

from cloudsched.dashboard.views import home as home_view
from cloudsched.dashboard.views.attention import MAX_QUEUES, build_attention
from cloudsched.dashboard.views.audit import list_deployments
from cloudsched.dashboard.views.health import build_health
from cloudsched.dashboard.views.need_rows import Need
from cloudsched.domain.documents.task import NeedCause
from cloudsched.domain.transitions.needs import LATE

NOTHING: dict[str, Any] = {
    "counts": {"countedAt": NOW.isoformat(), "needs": [{"cause": cause.value, "count": 0} for cause in NeedCause]},
    "tasks": {},
    "latest": {cause: {} for cause in NeedCause},
    "records": {},
    "sent": {},
    "startable": [],
    "waits": [],
    "lastFailures": [],
}


def ago(**distance: float) -> str:
    return (NOW - timedelta(**distance)).isoformat()


def execution(task: str, **fields: object) -> dict[str, Any]:
    made = {"id": f"e-{task}", "taskId": task, "title": f"Title of {task}", "status": "FAILED", "attempts": []}
    made |= {"allowedVerbs": ["retry"]}
    return {**made, "scheduledFor": ago(hours=1), "startedAt": ago(hours=1), "finishedAt": ago(hours=1), **fields}


def task(name: str, **fields: object) -> dict[str, Any]:
    made = {"id": name, "title": f"Title of {name}", "status": "ACTIVE", "handler": "h"}
    return {**made, "owner": "ada", "allowedVerbs": ["edit", "resume"], **fields}


def needing(cause: str, tasks: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """Return the API's answers where these tasks need attention."""
    groups = [{"handler": each["handler"], "count": 1, "taskId": each["id"], "oldest": ago(hours=9)} for each in tasks]
    found = {"cause": cause, "count": len(tasks), "oldest": ago(hours=9), "groups": groups, **changes.pop("found", {})}
    counts = {**NOTHING["counts"], "needs": [found, *(e for e in NOTHING["counts"]["needs"] if e["cause"] != cause)]}
    startable = [each["id"] for each in tasks]
    return {**NOTHING, "counts": counts, "tasks": {cause: tasks}, "startable": startable, **changes}


def list_needs(answer: dict[str, Any], queues: Sequence[dict[str, Any]] = (), **who: Any) -> list[Need]:
    needs: list[Need] = build_attention(answer, queues, visit(**who))["needs"]
    return needs


def test_what_was_not_counted_to_its_end_is_said_to_be_at_least_so_much() -> None:
    """In the line of its cause, and in the sentence."""
    some = [task(f"t{number}") for number in range(5)]
    found = {"count": 10_000, "isAtLeast": True}
    needs = needing("BUDGET", some, found=found)
    cause, *_ = list_needs(needs)
    assert cause.title == "At least 10,000 tasks"
    assert home_view.build(answer(needs=needs), visit())["sentence"].startswith("At least 10,000 things need you")


UNKNOWN = "Whether anything needs you is not known"
CUT = "Nothing found that needs you, but not everything was checked"


@pytest.mark.parametrize(
    ("counts", "queues", "said"),
    [
        (None, 0, UNKNOWN),
        ({**NOTHING["counts"], "needs": NOTHING["counts"]["needs"][1:]}, 0, CUT),
        ({**NOTHING["counts"], "needs": [{"cause": "OVERDUE", "count": 0, "isAtLeast": True}]}, 0, CUT),
        ({**NOTHING["counts"], "countedAt": ago(minutes=2)}, 0, CUT),
        (NOTHING["counts"], MAX_QUEUES, CUT),
    ],
)
def test_nothing_needs_you_is_said_only_after_everything_was_asked_and_answered(
    counts: dict[str, Any] | None, queues: int, said: str
) -> None:
    """Without the counts, without one of them, with one that was cut or is old, there is no all-clear and no tick."""
    served = [
        {"queue": f"q{number}", "waiting": {"value": 0, "atLeast": False}, "workers": 0} for number in range(queues)
    ]
    page = home_view.build(answer(needs={**NOTHING, "counts": counts}, queues=served), visit())
    assert page["calm"].startswith(said)
    assert page["sentence"].startswith(said)
    assert (page["status"].css, page["status"].word) == ("retry", "Not known")
    whole = home_view.build(answer(), visit())
    assert whole["sentence"].startswith("Nothing needs you.")
    assert whole["status"].css == "ok"


def test_tasks_whose_handler_is_gone_are_counted_once() -> None:
    """They fail because of that, so the line of the handler has them: what fails for a reason of its own is left."""
    tasks = [task("old", handler="gone"), task("bad", handler="h", consecutiveFailures=1)]
    gone = {"handler": "gone", "count": 2, "taskId": "old", "oldest": ago(hours=9)}
    bad = {"handler": "h", "count": 1, "taskId": "bad", "oldest": ago(hours=2)}
    needs = needing("FAILED", tasks, found={"count": 3, "groups": [bad, gone]})
    cause = {"reason": "UNKNOWN_HANDLER", "sentence": "Not registered: gone (2 tasks).", "subject": "gone", "count": 2}
    needs["counts"] = {**needs["counts"], "causes": [cause]}
    assert [each.title for each in list_needs(needs)] == [cause["sentence"], "Title of bad"]
    assert build_attention(needs, (), visit())["count"] == 2
    found = needing("FAILED", tasks[:1], found={"count": 2, "groups": [gone]})
    found["counts"] = {**found["counts"], "causes": [cause]}
    assert [each.title for each in list_needs(found)] == [cause["sentence"]]


def test_retrying_is_asked_with_what_the_handler_gets() -> None:
    """The task's own payload; of a run with one of its own, that."""
    tasks = [task(name, consecutiveFailures=1, payload={"of": name}, handler=name) for name in ("plain", "by-hand")]
    records = {
        "plain": execution("plain"),
        "by-hand": execution("by-hand", trigger="MANUAL", payload={"of": "run"}),
    }
    _, plain, by_hand = [need.retry_question for need in list_needs(needing("FAILED", tasks, records=records))]
    assert plain is not None
    assert by_hand is not None
    assert '"of": "plain"' in plain.payload
    assert '"of": "run"' in by_hand.payload


@pytest.mark.parametrize(
    ("record", "startable"), [({"allowedVerbs": []}, ["bad"]), ({"status": "SKIPPED"}, ["bad"]), ({}, [])]
)
def test_a_retry_that_would_be_refused_is_not_offered(record: dict[str, object], startable: list[str]) -> None:
    """As of a cancelled task, and of one that the caller may not start; what failed is listed all the same."""
    bad = task("bad", consecutiveFailures=1)
    needs = needing("FAILED", [bad], records={"bad": execution("bad", **record)}, startable=startable)
    [need] = list_needs(needs)
    assert need.retry_question is None


def test_a_wait_says_for_what_and_until_when() -> None:
    """That of the step that waits now, not of one that has its event."""
    step = {"number": 1, "kind": "EVENT", "name": "approved", "status": "WAITING", "startedAt": ago(hours=3)}
    old = {**step, "status": "SUCCEEDED", "dueAt": ago(hours=1)}
    until = (NOW + HOUR).isoformat()
    waits = [execution("close", status="SUSPENDED", steps=[old, {**step, "dueAt": until}])]
    [need] = list_needs(needing("WAITING", [task("close")], waits=waits))
    assert (need.title, need.what) == ("Title of close", "waits for the event approved, and gives up")


def test_a_queue_at_which_nobody_listens_needs_somebody() -> None:
    """If something waits in it; one that is served or empty needs nobody."""
    queues = [
        {
            "queue": "gpu",
            "skill": "cuda",
            "waiting": {"value": 2, "atLeast": False},
            "workers": 0,
            "firstSince": ago(minutes=40),
        },
        {"queue": "print", "waiting": {"value": 2, "atLeast": False}, "workers": 1},
        {"queue": "idle", "waiting": {"value": 0, "atLeast": False}, "workers": 0},
    ]
    [need] = list_needs(NOTHING, queues)
    assert (need.title, need.href) == ("gpu", "queues?queue=gpu")
    assert "2 runs wait for a worker with the skill cuda" in need.detail


SWEEP = {"finishedAt": ago(seconds=20), "lag": 20, "examined": 3, "dispatched": 0, "unsent": 0, "failed": 0}


@pytest.mark.parametrize(
    ("health", "counts", "words"),
    [
        ({"circuits": {}}, {"sweep": SWEEP}, ["answers", "on time", "runs"]),
        ({"circuits": {"queue": "open"}}, {"sweep": SWEEP}, ["answers", "has failed", "runs"]),
        (
            {"circuits": {"queue": "closed"}},
            {"overdueSince": ago(minutes=1)},
            ["answers", "on time", "has not run"],
        ),
        ({"circuits": {}}, {"overdueSince": ago(hours=1), "sweep": SWEEP}, ["answers", "late", "runs"]),
        ({"circuits": {}}, {"sweep": {**SWEEP, "lag": LATE.total_seconds() + 1}}, ["answers", "on time", "is late"]),
        ({"circuits": {}}, {"sweep": {**SWEEP, "unsent": 4}}, ["answers", "on time", "has problems"]),
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
        is_bad = word in {"does not answer", "has failed", "late", "is late", "has problems"}
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


def test_handlers_that_hang_are_named_while_all_else_is_well() -> None:
    hanging = "16 handlers hang: 'fetch' (16), since 2026-07-01 09:00:00 UTC"
    rows = build_health({"status": "ready", "circuits": {}, "hanging": hanging}, {"sweep": SWEEP}, visit())
    assert [row.part for row in rows] == ["Store", "Queue", "Sweep", "Handlers"]
    assert hanging in rows[-1].detail
    assert [row.status.shape for row in rows] == ["ok", "ok", "ok", "fail"]


def test_users_are_not_told_of_a_sweep_that_they_cannot_see() -> None:
    """The API says nothing of it to those who see their own tasks only."""
    assert [row.part for row in build_health({"circuits": {}}, {}, visit(owner="ada"))] == ["Store", "Queue"]


def answer(counts: dict[str, Any] | None = None, **changes: object) -> dict[str, Any]:
    nothing = {"start": NOW.isoformat(), "end": (NOW + HOUR).isoformat(), "due": 0}
    base = {
        "open": [],
        "due": [],
        "parts": {"ran": (counts or {}).get("hours", ()), "due": [nothing]},
        "next": [],
        "queues": [],
        "needs": NOTHING,
        "counts": counts or {},
        "health": {},
    }
    return {**base, **changes}


def test_the_numbers_are_those_that_the_api_has_counted() -> None:
    """Of each hour: what ran, was skipped, failed and began late, with links to the lists that they count."""
    this_hour = NOW.replace(minute=0, second=0)
    skipped = {"value": 5, "atLeast": True}
    counted = {"ran": 700, "failed": 7, "skipped": skipped, "calls": 3, "late": 2}
    hours = [
        {
            "start": (this_hour - timedelta(hours=each)).isoformat(),
            "end": (this_hour - timedelta(hours=each - 1)).isoformat(),
            **counted,
        }
        for each in range(11, -1, -1)
    ]
    late = [{"scheduledFor": ago(hours=1), "lateness": 154}]
    counts = {"hours": hours, "lateStarts": late, "open": {"RUNNING": 5000}}
    page = home_view.build(answer(counts=counts), visit())
    assert [each.words for each in page["numbers"]] == ["84 failed", "8,400 succeeded", "at least 60 skipped"]
    assert "; 84 runs failed since " in page["sentence"]
    assert "5,000 tasks have open runs" in page["sentence"]
    assert "24 of 8,484 started more than a minute late, the latest 1 of them by up to 2\xa0min" in page["latenessText"]
    assert page["moreOpen"] == 5000
    query = parse_qs(urlsplit(page["numbers"][2].href).query)
    assert (query["from"], query["outcome"]) == ([hours[0]["start"]], ["skipped"])
    assert query["until"] > [NOW.isoformat()], "what has just ended is counted"


@pytest.mark.parametrize(("count", "said"), [(1, "the only run"), (2, "both runs"), (1700, "all 1,700 runs")])
def test_runs_in_time_are_said_as_a_person_would(count: int, said: str) -> None:
    hour = {"start": ago(hours=2), "end": ago(hours=1), "ran": count, "failed": 0, "skipped": 0, "late": 0}
    page = home_view.build(answer(counts={"hours": [hour]}), visit())
    assert page["latenessText"] == f"Lateness: {said} started within a minute."


def test_a_deployment_leads_to_what_was_changed_about_it() -> None:
    """One of the last twelve hours has its link. Older ones do not crowd the list."""
    seen = [{"version": "v1", "at": ago(hours=13)}, {"version": "v2", "at": ago(hours=3)}]
    swept = {"failed": 0, "unsent": 0, "lag": 9, "dispatched": 0, "examined": 0, "finishedAt": ago(seconds=9)}
    page = home_view.build(answer(counts={"sweep": {**swept, "deployments": seen}}), visit())
    [shown] = page["deployments"]
    until = datetime.fromisoformat(parse_qs(urlsplit(shown["link"]).query)["until"][0])
    known = [{"version": "v2", "at": ago(hours=3)}]
    assert list_deployments(known, None, until), "the deployment itself is on the page that the link opens"
