"""Read what explains a task: the lock that it takes, its place there, its last record, and who listens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from cloudsched.domain.explanation.at_instant import MAX_RECORDS, TOLD, explain_instant, find_day, sort_records
from cloudsched.domain.explanation.explain import explain
from cloudsched.domain.explanation.findings import SWEEP_TOLERANCE, Evidence, Explanation, Turns, Undelivered
from cloudsched.engine.concurrency.service_threads import hide_names
from cloudsched.engine.pull.presence import count_listeners
from cloudsched.engine.sweep.shard_sweeps import SWEEP_NOTE_ID, SweepNote
from cloudsched.features.table import FEATURES, find_place

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store


def explain_task(
    store: Store,
    clock: Clock,
    task: Task,
    *,
    shows_holders: bool,
    at: datetime | None = None,
) -> Explanation:
    """Return why a task runs when it does, or does not run, or why it did or did not on the day of an instant.

    Reads its last record, or a page of those of that day, what became of their deliveries, the lock that it takes with
    its places in the wait list, and the notes of workers if it waits for one.
    """
    records = _list_records(store, task, at) if at is not None else None
    ids = filter(None, (task.last_execution_id, task.outcome_execution_id))
    last_id = max(ids, default=None)  # they begin with their instants; one that was skipped or expired has run nothing
    last = None if last_id is None or at is not None else store.load_execution(task.id, last_id)
    now = clock.now()
    note = _load_note(store, task, now)
    told = [] if last is None else [last]
    if at is not None and records is not None:
        told = sort_records(records[0], at)[:TOLD]
    evidence = Evidence(
        task=task,
        now=now,
        turns=_explain_turns(store, task, now, shows_holders=shows_holders),
        last=last,
        undelivered=_find_undelivered(store, task, told, now),
        swept_at=None if note is None else note.updated_at,
        hanging="" if note is None else note.hanging if shows_holders else hide_names(note.hanging),
        listeners=count_listeners(store, task, now),
    )
    if at is None or records is None:
        return explain(evidence)
    found, is_cut = records
    return explain_instant(evidence, at, found, is_cut=is_cut)


def _explain_turns(store: Store, task: Task, now: datetime, *, shows_holders: bool) -> Turns | None:
    for feature in FEATURES:
        if feature.turns:
            turns: Turns | None = find_place(feature.turns)(store, task, now, shows_holders=shows_holders)
            return turns
    return None


def _load_note(store: Store, task: Task, now: datetime) -> SweepNote | None:
    """Return the note of the last sweep if the task is late: only then is it read."""
    if task.wake_at is None or task.wake_at + SWEEP_TOLERANCE >= now:
        return None
    stored = store.records.load(SweepNote, SWEEP_NOTE_ID)
    return None if stored is None else stored.record


def _list_records(store: Store, task: Task, at: datetime) -> tuple[list[Execution], bool]:
    day = find_day(task, at)
    page = store.search.list_executions(task.id, limit=MAX_RECORDS, before=day.end)
    found = [each for each in page.items if day.meets(each)]
    return found, len(found) == len(page.items) and page.next_page_token is not None


def _find_undelivered(store: Store, task: Task, told: Sequence[Execution], now: datetime) -> list[Undelivered]:
    """Return what did not reach anybody, of what these executions have sent."""
    places = [feature.undelivered for feature in FEATURES if feature.undelivered]
    return [each for place in places for each in find_place(place)(store, task, told, now)]
