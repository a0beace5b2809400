"""A task at its largest fits one Firestore document, in whatever language its texts are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.conftest import NOW, MakeTask

from cloudsched import RetryPolicy, Schedule, TaskDraft
from cloudsched.domain.documents.authority import EventSender, Requesters, SenderRole
from cloudsched.domain.documents.event import Event
from cloudsched.domain.documents.execution import (
    Attempt,
    ExecutionStatus,
    Lease,
    ProgressNote,
    Run,
    Suspension,
)
from cloudsched.domain.documents.json_limits import MAX_DOCUMENT_BYTES, document_size, stored_size
from cloudsched.domain.documents.log_lines import MAX_LOG_BYTES
from cloudsched.domain.documents.task import (
    MAX_OPEN_RUNS,
    MAX_REQUESTS,
    MAX_UNNAMED_REQUESTS,
    RecentRequest,
    RequestKind,
    Task,
)
from cloudsched.domain.transitions.finish import FIRST_ATTEMPTS, LAST_ATTEMPTS, with_attempt
from cloudsched.domain.transitions.run_records import MAX_AWAITED_EVENTS_BYTES, MAX_SPEC_BYTES, fit_runs
from cloudsched.domain.transitions.suspend import on_event
from cloudsched.engine.execution.call import truncate_error
from cloudsched.engine.handlers.context import MAX_PROGRESS_NOTES, truncate_progress
from cloudsched.engine.handlers.registry import Registry
from cloudsched.engine.handlers.validation import SHORT_FIELDS, validate_draft
from cloudsched.errors import InvalidInput, NotAllowed

SIDES = [
    EventSender(role=role, via=via).side
    for role in SenderRole
    for via in (None, "key:v")
    if role is SenderRole.OWNER or via is None
]
TEXTS = pytest.mark.parametrize("character", ["x", "ü", "中", "🕰", "\ud800"], ids=ascii)


def largest_run(number: int, character: str) -> Run:
    """Return a run with as much of everything as can be: attempts, errors, progress, awaited calls."""
    text = character * 10_000
    run = Run(
        execution_id=f"20270101T09{number:02}00Z",
        scheduled_for=NOW + timedelta(minutes=number),
        due_at=NOW,
        lease=Lease(token_hash="0" * 32, started_at=NOW, until=NOW, worker="中" * 128, claimed_by="中" * 128),
        suspension=Suspension(at=NOW, reason="x" * 2_000, calls=tuple(range(500)), events=("e" * 128,)),
        progress=tuple(truncate_progress(NOW, text) for _ in range(MAX_PROGRESS_NOTES)),
    )
    for attempt in range(FIRST_ATTEMPTS + LAST_ATTEMPTS + 5):
        run = with_attempt(
            run,
            Attempt(
                number=attempt + 1,
                started_at=NOW,
                finished_at=NOW,
                status=ExecutionStatus.FAILED,
                error=truncate_error(text, text, text),
                worker="中" * 128,
                claim="0" * 32,
                ended_by="中" * 128,
            ),
        )
    return run


def largest_task(make_task: MakeTask, character: str) -> Task:
    """Return a task whose owner's part, events and open runs are all as large as they may be."""
    events = [
        Event(name="e", payload="x" * 8_000, at=NOW, token=f"{number:064}", sender=EventSender(role=SenderRole.OWNER))
        for number in range(MAX_AWAITED_EVENTS_BYTES // 8_001)
    ]
    runs = tuple(largest_run(number, character) for number in range(MAX_OPEN_RUNS))
    requests = [
        RecentRequest(key=f"20270101T0900{number:02} {side:*<20}", content="c" * 12, at=NOW, side=side, kind=kind)
        for side in SIDES
        for kind in RequestKind
        for number in range(MAX_REQUESTS if kind is RequestKind.NAMED else MAX_UNNAMED_REQUESTS)
    ]
    assert make_task(recent_requests=requests).requests_with(*requests) == tuple(requests), "that is no room's end"
    small = make_task(events=events, runs=runs, recent_requests=requests, message="中" * 2_000)
    room = MAX_SPEC_BYTES - stored_size(make_task().to_stored())
    return small.model_copy(update={"payload": {"text": "x" * room}})


@TEXTS
def test_a_task_at_its_largest_fits_a_document(make_task: MakeTask, character: str) -> None:
    """With twenty open runs, each after many failures, beside the largest payload and the largest events."""
    task = largest_task(make_task, character)
    assert document_size(("tasks", task.id), task.to_stored()) > MAX_DOCUMENT_BYTES, "nothing would be tested"
    fitted = fit_runs(task)
    assert document_size(("tasks", task.id), fitted.to_stored()) <= MAX_DOCUMENT_BYTES - 1_000
    assert fitted.model_copy(update={"runs": task.runs}) == task
    for run, before in zip(fitted.runs, task.runs, strict=True):
        assert len(run.attempts) + run.omitted_attempts == len(before.attempts) + before.omitted_attempts
        assert run.attempts[-1].number == before.attempts[-1].number
        assert run.attempts[0].number == 1
        texts: Any = {"attempts": (), "omitted_attempts": 0, "progress": ()}
        assert run.model_copy(update=texts) == before.model_copy(update=texts)
    assert fit_runs(fitted) == fitted


@pytest.mark.parametrize("notes", [0, 10, MAX_PROGRESS_NOTES])
@pytest.mark.parametrize("attempts", [0, 3, FIRST_ATTEMPTS + LAST_ATTEMPTS])
@pytest.mark.parametrize("calls", [0, 500])
def test_runs_fit_whatever_they_are_large_by(make_task: MakeTask, attempts: int, notes: int, calls: int) -> None:
    """Attempts, notes and awaited calls count toward the room, each alone and together."""
    task = largest_task(make_task, "中")
    runs = tuple(
        run.model_copy(
            update={
                "attempts": run.attempts[:attempts],
                "progress": run.progress[:notes],
                "suspension": run.suspension and run.suspension.model_copy(update={"calls": tuple(range(calls))}),
            }
        )
        for run in task.runs
    )
    fitted = fit_runs(task.model_copy(update={"runs": runs}))
    assert document_size(("tasks", task.id), fitted.to_stored()) <= MAX_DOCUMENT_BYTES - 1_000


@pytest.mark.parametrize("count", [6, 9])
def test_logs_fit_beside_the_largest_of_the_rest(make_task: MakeTask, count: int) -> None:
    """However many runs have them, and however little else the runs have."""
    log = "x" * (MAX_LOG_BYTES * 4 // 3 + 100)  # sealed, in base64
    runs = [largest_run(number, "中").model_copy(update={"log": log, "progress": ()}) for number in range(count)]
    for attempts in range(FIRST_ATTEMPTS + LAST_ATTEMPTS):
        few = tuple(run.model_copy(update={"attempts": run.attempts[:attempts]}) for run in runs)
        fitted = fit_runs(largest_task(make_task, "x").model_copy(update={"runs": few}))
        assert document_size(("tasks", fitted.id), fitted.to_stored()) <= MAX_DOCUMENT_BYTES - 1_000


@TEXTS
def test_what_fits_is_not_touched(make_task: MakeTask, character: str) -> None:
    """Neither one run at its largest, nor twenty beside a small payload in a language of one byte a character."""
    one = make_task(runs=(largest_run(0, character),))
    assert fit_runs(one) is one
    few = make_task(runs=tuple(largest_run(number, character) for number in range(10)))
    assert fit_runs(few) is few


def test_a_run_keeps_its_latest_notes_first(make_task: MakeTask) -> None:
    """Old progress goes before errors do: nobody reads it any more."""
    notes = (*[ProgressNote(at=NOW, text="x" * 200)] * 49, ProgressNote(at=NOW, text="last"))
    runs = tuple(largest_run(number, "中").model_copy(update={"progress": notes}) for number in range(MAX_OPEN_RUNS))
    task = make_task(runs=runs, payload={"text": "x" * 200_000})
    assert document_size(("tasks", task.id), task.to_stored()) > MAX_DOCUMENT_BYTES, "nothing would be tested"
    for run in fit_runs(task).runs:
        assert run.progress[-1].text == "last"
        assert run.attempts[-1].error is not None


def test_events_are_limited_in_bytes(make_task: MakeTask) -> None:
    """As Firestore counts them: eight KiB of small numbers are four times as many there."""
    run = Run(execution_id="e", scheduled_for=NOW, due_at=NOW)
    task = make_task(runs=(run,))

    def send(number: int, role: SenderRole = SenderRole.OWNER) -> Task:
        event = Event(name="e", payload=[1] * 4_000, at=NOW, token=f"{number}", sender=EventSender(role=role))
        return on_event(task, event.model_copy(update={"payload": [number] * 4_000}), NOW, early=True).task

    for number in range(4):
        task = send(number)
    with pytest.raises(NotAllowed, match="bytes of events"):
        send(5)
    task = send(5, SenderRole.ADMIN)
    with pytest.raises(NotAllowed, match="bytes of events"):
        send(6, SenderRole.WORKER)
    assert stored_size(task.to_stored()["events"]) < MAX_AWAITED_EVENTS_BYTES


RULE = f"FREQ=DAILY;BYHOUR=9{',9' * 4080}"


def validate(**more: Any) -> TaskDraft:
    """Validate a draft with its short fields at their longest, beside the payload of which Firestore counts most."""
    texts = {"id": "x" * 128, "owner": "🕰" * 128, "title": "🕰" * 500, "handler": "🕰" * 200}
    given: dict[str, Any] = {**texts, "payload": {"n": [1] * 65_530}, "pull": {"queue": "q" * 64, "skill": "s" * 64}}
    given |= {"schedule": Schedule(rrule=RULE, dtstart="2027-01-01T09:00:00"), "retry": RetryPolicy(jitter=0.123456789)}
    given |= {"retention": timedelta(seconds=9_999.999_999), "expected_duration": 3_599.999_999}
    given |= {"query_per_execution": 99_999.999_999, "tokens_per_execution": 99_999.999_999}
    return validate_draft(TaskDraft.of(**given | more), Registry(), None, Requesters.SERVERS)


def test_short_fields_fit_beside_the_largest_payload() -> None:
    """A draft that has no others is not measured."""
    draft = validate()
    assert draft.model_fields_set == SHORT_FIELDS
    assert stored_size(draft.model_dump(by_alias=True, exclude_none=True)) <= MAX_SPEC_BYTES


@pytest.mark.parametrize(
    "more", [{"schedule": Schedule(rrule=[f"{RULE},{hour}" for hour in range(10)])}, {"description": "🕰" * 10_000}]
)
def test_other_fields_are_measured(more: dict[str, Any]) -> None:
    """A draft that is too large with them is refused by its largest part."""
    with pytest.raises(InvalidInput, match=r"^payload.*as Firestore counts"):
        validate(**more)
