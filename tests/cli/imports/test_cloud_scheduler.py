"""Cloud Scheduler's jobs as tasks: what each target becomes, what is refused, and what an import changes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.instants import DAY, SECOND

from cloudsched import RetryPolicy, Schedule, TaskStatus
from cloudsched.cli.job_files import Job, read_cloud_scheduler
from cloudsched.domain.documents.task import TaskId
from cloudsched.testing import Simulation

Load = Callable[..., tuple[int, str]]


def encode(body: object) -> str:
    return base64.b64encode(body if isinstance(body, bytes) else json.dumps(body).encode()).decode()


def job(name: str = "report", **fields: Any) -> dict[str, Any]:
    return {
        "attemptDeadline": "180s",
        "httpTarget": {
            "body": encode({"name": "sales"}),
            "headers": {"Authorization": "Bearer secret", "User-Agent": "Google-Cloud-Scheduler", "X-Team": "a"},
            "httpMethod": "POST",
            "uri": "https://shop.example/report",
        },
        "name": f"projects/shop/locations/europe-west1/jobs/{name}",
        "schedule": "0 9 * * 1-5",
        "scheduleTime": "2027-01-04T08:00:00Z",
        "state": "ENABLED",
        "timeZone": "Europe/Paris",
        "userUpdateTime": "2026-01-01T00:00:00Z",
        **fields,
    }


@pytest.fixture(name="load")
def load_jobs(load: Load) -> Load:
    """Import a list of jobs, or what stands for one."""

    def load_list(jobs: object, *options: str) -> tuple[int, str]:
        content = jobs if isinstance(jobs, bytes) else json.dumps(jobs)
        return load("cloud-scheduler", content, *options, "--yes")

    return load_list


def read(data: object) -> tuple[list[Job], list[str]]:
    found = read_cloud_scheduler(json.dumps(data).encode(), prefix="")
    return found.jobs, found.refusals


TARGETS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "http": (
        {},
        {"url": "https://shop.example/report", "method": "POST", "headers": {"X-Team": "a"}, "body": {"name": "sales"}},
    ),
    "http, text": (
        {"httpTarget": {"uri": "http://x", "body": encode(b"plain words")}},
        {"url": "http://x", "method": "POST", "body": "plain words"},
    ),
    "http, bytes": (
        {"httpTarget": {"uri": "http://x", "body": encode(b"\xff\x00"), "httpMethod": "PUT"}},
        {"url": "http://x", "method": "PUT", "body": {"base64": encode(b"\xff\x00")}},
    ),
    "Pub/Sub": (
        {
            "httpTarget": None,
            "pubsubTarget": {"topicName": "projects/shop/topics/t", "data": encode({"a": 1}), "attributes": {"k": "v"}},
        },
        {"topic": "projects/shop/topics/t", "body": {"a": 1}, "attributes": {"k": "v"}},
    ),
    "App Engine": (
        {
            "httpTarget": None,
            "appEngineHttpTarget": {"relativeUri": "/x", "httpMethod": "GET", "appEngineRouting": {"service": "s"}},
        },
        {"path": "/x", "method": "GET", "service": "s"},
    ),
}


@pytest.mark.parametrize("target", TARGETS)
def test_a_handler_for_any_job_gets_the_whole_target(target: str) -> None:
    """Each kind of target, and each kind of body; credentials in headers are never stored, and that is said."""
    fields, payload = TARGETS[target]
    (found,), refusals = read([job(**fields)])
    assert (found.payload, refusals) == (payload, [])
    assert found.left_out == (("the header Authorization",) if target == "http" else ())


def test_a_handler_of_its_own_gets_the_body(load: Load, sim: Simulation) -> None:
    """One with the job's name, or one that --map names; it runs at the job's time, in its zone."""
    jobs = [job("report"), job("other", description="Sales of the week")]
    code, output = load(jobs, "--map", "oth*=report")
    assert code == 0, output
    assert "job report: the header Authorization is left out." in output
    sim.advance(DAY)
    for name in ("report", "other"):
        (record,) = sim.executions(name)
        assert (record.content, record.scheduled_for.hour) == ({"name": "sales"}, 8)
    assert sim.app.get("other").title == "Sales of the week"
    assert load(jobs, "--map", "oth*=report")[1].splitlines()[-1] == "Nothing differs."


def test_a_target_that_no_handler_is_named_for_is_refused(load: Load, sim: Simulation) -> None:
    """The refusal says its address, and the options; --handler takes what is left."""
    jobs = [job("report"), job("unknown")]
    code, output = load(jobs)
    assert (code, len(sim.app.tasks().items)) == (2, 0)
    assert "job unknown: no handler is named for 'unknown' (https://shop.example/report): give --map" in output
    assert load(jobs, "--handler", "any-job")[0] == 0
    assert sim.app.get("unknown").payload["url"] == "https://shop.example/report"
    assert sim.app.get("report").payload == {"name": "sales"}
    code, output = load(jobs, "--handler", "none")
    assert code == 2
    assert "there is no handler named 'none'" in output


def test_a_paused_job_is_a_paused_task(load: Load, sim: Simulation) -> None:
    """It runs nothing, an import of the enabled job leaves the pause to people, and so does a repeated one."""
    paused = [job(state="PAUSED")]
    assert load(paused)[1].splitlines()[-1] == "2 changes made."
    sim.advance(7 * DAY)
    assert sim.app.get("report").status is TaskStatus.PAUSED
    assert sim.executions("report") == []
    assert load(paused)[1].splitlines()[-1] == "Nothing differs."
    sim.app.resume("report")
    assert load([job()])[1].splitlines()[-1] == "Nothing differs."


def test_retries_and_words_are_taken_over(load: Load, sim: Simulation) -> None:
    """A retry configuration becomes a policy, and App Engine's words are read as plain words, in the job's zone."""
    config = {"retryCount": 4, "minBackoffDuration": "2.500s", "maxBackoffDuration": "60s", "maxDoublings": 5}
    jobs = [job(schedule="every monday 09:00", retryConfig=config)]
    assert load(jobs)[0] == 0
    task = sim.app.get("report")
    assert task.retry == RetryPolicy(
        max_retries=4,
        first_delay=2.5 * SECOND,
        base=5 * SECOND,
        factor=2.0,
        cap=60 * SECOND,
    )
    assert [f"{each:%a %H:%M}" for each in sim.app.upcoming("report", 2)] == ["Mon 08:00"] * 2
    assert load(jobs)[1].splitlines()[-1] == "Nothing differs."
    code, output = load([job(retryConfig={"retryCount": 2})])
    assert "~ update report: schedule: " in output
    assert "; retry" in output
    assert sim.app.get("report").retry is not None
    assert code == 0


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"schedule": None}, "schedule: "),
        ({"timeZone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"name": "report"}, "name: "),
        ({"name": f"projects/p/locations/l/jobs/{'n' * 200}"}, "too long"),
        ({"httpTarget": None}, "0 targets"),
        ({"pubsubTarget": {"topicName": "t"}}, "2 targets"),
        ({"httpTarget": {"uri": "http://x", "body": "%%%"}}, "not base64"),
        ({"retryConfig": {"retryCount": 1, "minBackoffDuration": "soon"}}, "minBackoffDuration"),
    ],
    ids=str,
)
def test_a_job_that_cannot_be_a_task_is_refused_by_name(fields: dict[str, Any], why: str) -> None:
    """The others of the list are read all the same."""
    jobs, refusals = read([{**job(), **fields}, job("fine")])
    assert [each.name for each in jobs] == ["fine"]
    (refusal,) = refusals
    assert refusal.startswith("job ")
    assert why in refusal


@pytest.mark.parametrize("title", ["call mum", f"call {'mum and dad and ' * 5}everybody"])
def test_words_that_name_a_task_are_refused(title: str, load: Load, sim: Simulation) -> None:
    """Plain words may have a title; in a list of jobs that is a misreading, which the refusal quotes, cut to length."""
    code, output = load([job(schedule=f"{title} every monday at 9")])
    assert (code, len(sim.app.tasks().items)) == (2, 0)
    shown = " ".join(output.split())
    assert "refused: job report: its schedule " in shown
    assert f"has words that are no time: {title[:60]!r}" in shown


def test_two_jobs_of_one_name_are_refused() -> None:
    """Two locations may have them: each list needs a name of its own."""
    (first,), (refusal,) = read([job(), job(schedule="0 1 * * *")])
    assert isinstance(first.schedule, Schedule)
    assert "--name" in refusal


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"5", b"\xff", b'"x"'])
def test_a_file_that_is_no_list_is_refused_whole(content: bytes, load: Load) -> None:
    """In one sentence that says which command writes the file."""
    code, output = load(content, "--handler", "any-job")
    assert code == 2
    assert "gcloud scheduler jobs list --format=json" in " ".join(output.split())


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*job(), "pubsubTarget", "retryConfig", "description"]), ANYTHING, max_size=3))
def test_no_value_breaks_the_reader(fields: dict[str, Any]) -> None:
    """Whatever stands where: a job whose id a task may have, or a refusal."""
    jobs, refusals = read([job(**fields)])
    assert len(jobs) + len(refusals) == 1
    for each in jobs:
        TypeAdapter(TaskId).validate_python(each.id)
