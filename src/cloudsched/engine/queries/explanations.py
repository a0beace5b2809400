"""Read what explains a task: the lock that it takes, its place there, its last record, and who listens."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.audit_note import AuditNote, find_first_id
from cloudsched.domain.documents.delivery_channels import SENDER_NAMES
from cloudsched.domain.documents.execution import Trigger
from cloudsched.domain.documents.policy import Overlap, Priority
from cloudsched.domain.documents.run_counts import LATE, is_late
from cloudsched.domain.documents.verbs import EDITS, Action
from cloudsched.domain.explanation.at_instant import (
    MAX_RECORDS,
    TOLD,
    explain_instant,
    find_day,
    list_due,
    list_pauses,
    name_author,
    sort_records,
)
from cloudsched.domain.explanation.explain import explain, with_message
from cloudsched.domain.explanation.findings import Evidence, Explanation, Undelivered
from cloudsched.domain.in_words import say_duration
from cloudsched.domain.transitions.notices import name_instant, say_instant
from cloudsched.domain.transitions.planning import jittered_start
from cloudsched.engine.concurrency.service_threads import hide_names
from cloudsched.engine.ports.records import record_of
from cloudsched.engine.sweep.shard_sweeps import SWEEP_NOTE_ID, SweepNote
from cloudsched.features.table import FEATURES, find_place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.explanation.at_instant import Day
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.queries.conditions import Conditions

_TICK: Final = timedelta(microseconds=1)
_NOTES: Final = 50
"""The number of notes of acts before a late start that are looked through."""


def explain_task(
    store: Store,
    clock: Clock,
    task: Task,
    *,
    shows_holders: bool,
    at: datetime | None = None,
    conditions: Conditions | None = None,
) -> Explanation:
    """Return why a task runs when it does, or does not, or why it did or did not on an instant's day.

    Reads its last record, or a page of those of that day, what became of their deliveries, the lock that it
    takes with its places in the wait list, and the notes of workers if it waits for one. The `conditions` tell what
    stands in the way of its next run.
    """
    now = clock.now()
    evidence = Evidence(
        task=task,
        now=now,
        turns=_ask_feature("turns", store, task, now, shows_holders=shows_holders),
        workers=_ask_feature("workers", store, task, now),
    )
    if note := _load_note(store, task, now):
        hanging = note.hanging if shows_holders else hide_names(note.hanging)
        evidence = replace(evidence, swept_at=note.updated_at, hanging=hanging)

    if conditions is not None and task.is_active:
        evidence = replace(evidence, conditions=conditions.find(task, now, shows_queue=shows_holders))

    if at is not None:
        records, is_cut = _list_records(store, evidence, at)
        told = sort_records(records, at)[:TOLD]
        delays = {each.id: "".join(_find_delays(store, task, each, shows_all=shows_holders)) for each in told}
        evidence = replace(evidence, undelivered=_find_undelivered(store, task, told, now), delays=delays)
        return explain_instant(evidence, at, records, is_cut=is_cut)

    # The ids begin with their instants. An occurrence that was skipped or expired has run nothing.
    last_id = max(filter(None, (task.last_execution_id, task.outcome_execution_id)), default=None)
    if last_id and (last := store.load_execution(task.id, last_id)):
        evidence = replace(evidence, last=last, undelivered=_find_undelivered(store, task, [last], now))
    return explain(evidence)


def _find_delays(store: Store, task: Task, record: Execution, *, shows_all: bool) -> Iterator[str]:
    """Yield who retried a run and, if it began late, what held it last and whether all did, after a space each."""
    for each in task.history:
        if (each.action, each.execution_id) == (Action.RETRIED, record.id):
            yield f" It was retried{name_author(each)} {say_instant(task, each.at)}."
    due = record.scheduled_for
    began = record.started_at or due
    if record.trigger is not Trigger.SCHEDULE or not is_late(max(due, jittered_start(task, due)), began):
        return
    span = due, began - LATE
    holds = [each for each in _list_holds(store, task, due, began, shows_all=shows_all) if span[1] < each[0] <= began]
    for end, what in sorted(holds)[-1:]:
        yield f" Until {name_instant(task, end)}, {what}"
    (runs,) = store.search.count_runs(None if shows_all else task.owner, span)
    if runs.late == runs.ran + runs.failed > 1:
        whose = "" if shows_all else " of its owner"
        said = " to ".join(name_instant(task, each) for each in span)
        began_late = f"began {say_duration(LATE)} or more after they were due"
        yield f" All {runs.late:,} runs{whose} that were due from {said} and succeeded or failed {began_late}."


def _list_holds(
    store: Store, task: Task, due: datetime, began: datetime, *, shows_all: bool
) -> Iterator[tuple[datetime, str]]:
    """Yield what held a run that was due, with the end of each. Only those who see all tasks are told of queues.

    Edits since then may have changed which queue it had, and whether it had to wait for a run before it.
    """
    for pause in list_pauses(task):
        yield pause.end or due, with_message(f"its task was paused{name_author(pause.entry)}", pause.why)
    if any(each.action in EDITS and each.at > due for each in task.history):
        return
    for run in store.search.list_executions(task.id, limit=TOLD, before=due).items:
        if run.started_at and run.started_at <= due and task.overlap is not Overlap.ALLOW:
            yield run.finished_at or due, f"the run of {name_instant(task, run.scheduled_for)} was open."
    if not shows_all or task.workers:
        return
    notes = store.records.list_all(AuditNote, limit=_NOTES, after=find_first_id(began))
    paused = {each.queue for each in notes if each.entry.action is Action.QUEUE_PAUSED and each.entry.at <= due}
    for note in notes:
        # The NORMAL ones have no name of their own.
        name = re.sub(r"-q\d+$", "", note.queue or "").rpartition("-")[2].upper()
        priority = name if name in {*Priority, *SENDER_NAMES, "HOPS"} else Priority.NORMAL
        if note.entry.action is Action.QUEUE_RESUMED and note.queue in paused and priority == task.priority:
            yield note.entry.at, f"a queue of its priority, {note.queue}, was paused."


def _ask_feature(what: str, *arguments: object, **options: object) -> Any:  # noqa: ANN401 - what its row says
    """Return what the feature says that has a function of this kind. None if there is none."""
    places = (getattr(feature, what) for feature in FEATURES)
    return next((find_place(place)(*arguments, **options) for place in places if place), None)


def _load_note(store: Store, task: Task, now: datetime) -> SweepNote | None:
    """Return the note of the last sweep if the task is late: only then is it read."""
    if task.wake_at and is_late(task.wake_at, now):
        return record_of(store.records.load(SweepNote, SWEEP_NOTE_ID))
    return None


def _list_records(store: Store, evidence: Evidence, at: datetime) -> tuple[list[Execution], bool]:
    """Return records of an instant's day, the latest first, and whether those around the instant may be missing.

    If the day has more after the instant than a page, those up to a few occurrences after it are read, too.
    """
    day = find_day(evidence.task, at)
    records, is_cut = _read_records(store, evidence.task, day, at, before=day.end)
    if is_cut and (due := list_due(evidence, at)):
        around, is_cut = _read_records(store, evidence.task, day, at, before=due[-1] + _TICK)
        records += [each for each in around if each not in records]
    return records, is_cut


def _read_records(store: Store, task: Task, day: Day, at: datetime, before: datetime) -> tuple[list[Execution], bool]:
    page = store.search.list_executions(task.id, limit=MAX_RECORDS, before=before)
    found = [each for each in page.items if day.meets(each)]
    is_cut = page.next_page_token is not None and len(found) == len(page.items) and found[-1].scheduled_for > at
    return found, is_cut


def _find_undelivered(store: Store, task: Task, told: Sequence[Execution], now: datetime) -> list[Undelivered]:
    """Return what did not reach anybody, of what these executions have sent."""
    places = (feature.undelivered for feature in FEATURES)
    return [each for place in places if place for each in find_place(place)(store, task, told, now)]
