"""Read what explains a task: the lock that it takes, its place there, its last record, and who listens."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.audit_note import AuditNote, find_first_id
from cloudsched.domain.documents.delivery_channels import SENDER_NAMES
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.run_counts import LATE, has_started_late, is_late
from cloudsched.domain.documents.verbs import Action
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
from cloudsched.domain.transitions.notices import name_instant
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
_NOTES: Final = 20
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
    note = _load_note(store, task, now)
    if note is not None:
        hanging = note.hanging if shows_holders else hide_names(note.hanging)
        evidence = replace(evidence, swept_at=note.updated_at, hanging=hanging)

    if at is not None:
        records, is_cut = _list_records(store, evidence, at)
        told = sort_records(records, at)[:TOLD]
        delays = {each.id: "".join(_find_delays(store, task, each, shows_all=shows_holders)) for each in told}
        evidence = replace(evidence, undelivered=_find_undelivered(store, task, told, now), delays=delays)
        return explain_instant(evidence, at, records, is_cut=is_cut)

    if conditions is not None and task.is_active:
        evidence = replace(evidence, conditions=conditions.find(task, now, shows_queue=shows_holders))
    # The ids begin with their instants. An occurrence that was skipped or expired has run nothing.
    ids = filter(None, (task.last_execution_id, task.outcome_execution_id))
    last_id = max(ids, default=None)
    last = store.load_execution(task.id, last_id) if last_id else None
    if last is not None:
        undelivered = _find_undelivered(store, task, [last], now)
        evidence = replace(evidence, last=last, undelivered=undelivered)
    return explain(evidence)


def _find_delays(store: Store, task: Task, record: Execution, *, shows_all: bool) -> Iterator[str]:
    """Yield what the notes and the counts tell of the time in which a run waited to start, each with a space before.

    That is who retried it, or the pauses of its task that ended then, and, for those who see all tasks, which of its
    queues was resumed, also before a later attempt; and how many of the runs that were due in that time, and have
    ended, started in time: of all tasks, or of its owner's.
    """
    began = record.started_at
    waits = []
    if began is not None and has_started_late(record):
        waits.append((record.scheduled_for, began, ""))
    for before, after in pairwise(record.attempts):
        wait = after.started_at - before.finished_at
        said = f" Attempt {after.number} began {say_duration(wait)} after attempt {before.number} ended."
        waits += [(before.finished_at, after.started_at, said)] if wait > LATE else []
    for start, end, said in waits[:TOLD]:
        yield said
        yield from _find_own_delays(task, record, start, end)
        notes = store.records.list_all(AuditNote, limit=_NOTES, after=find_first_id(end)) if shows_all else ()
        for note in notes:
            is_resumed = note.entry.action is Action.QUEUE_RESUMED and _carries(note.queue or "", task.priority)
            if is_resumed and note.entry.at >= start:
                yield f" The queue {note.queue} was paused until {name_instant(task, note.entry.at)}."
    if began is None or not has_started_late(record):
        return
    until = began - LATE
    (runs,) = store.search.count_runs(None if shows_all else task.owner, [record.scheduled_for, until])
    count = runs.ran + runs.failed
    span = f"due from {name_instant(task, record.scheduled_for)} to {name_instant(task, until)}"
    whose = "" if shows_all else " of its owner"
    if count > 1 and runs.late == count:
        yield f" Nothing{whose} that was {span} and has ended started in time: all {count:,} runs began late."
    elif count > 1:
        yield f" Of the {count:,} runs{whose} that were {span} and have ended, {runs.late:,} began late."


def _find_own_delays(task: Task, record: Execution, start: datetime, end: datetime) -> Iterator[str]:
    """Yield who retried a run, and the pauses of its task that ended, in a time in which it waited."""
    for each in task.history:
        if (each.action, each.execution_id) == (Action.RETRIED, record.id) and start <= each.at <= end:
            yield f" It was retried{name_author(each)}."
    for pause in list_pauses(task):
        if pause.end is not None and start < pause.end <= end:
            said = f" Its task was paused{name_author(pause.entry)} until {name_instant(task, pause.end)}"
            yield with_message(said, (pause.entry and pause.entry.reason) or "")


def _carries(queue: str, priority: Priority) -> bool:
    """Return whether a queue, by its name, is one of a priority's own. The NORMAL ones have no name of their own."""
    name = re.sub(r"-q\d+$", "", queue).rpartition("-")[2].upper()
    return name == priority or (priority is Priority.NORMAL and name not in {*Priority, *SENDER_NAMES, "HOPS"})


def _ask_feature(what: str, *arguments: object, **options: object) -> Any:  # noqa: ANN401 - what its row says
    """Return what the feature says that has a function of this kind. None if there is none."""
    place = next(filter(None, (getattr(feature, what) for feature in FEATURES)), None)
    return None if place is None else find_place(place)(*arguments, **options)


def _load_note(store: Store, task: Task, now: datetime) -> SweepNote | None:
    """Return the note of the last sweep if the task is late: only then is it read."""
    if task.wake_at is None or not is_late(task.wake_at, now):
        return None
    return record_of(store.records.load(SweepNote, SWEEP_NOTE_ID))


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
    places = [feature.undelivered for feature in FEATURES if feature.undelivered]
    return [each for place in places for each in find_place(place)(store, task, told, now)]
