"""Tell a schedule back to its author as it was understood: in words, with its next instants.

Every answer that creates a task or changes its schedule carries it, so that a person or an agent sees a
misunderstanding before the task runs. It is made for the answer only: nothing of it is stored, lists leave it
out, and a dispatch never makes one. Its searches are part of what the request may search.
`make_dry_scheduler` plans a task that is only to be checked.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.responses.api_responses import ReadBack
from cloudsched.domain.schedules.assumptions import list_surprises
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.schedules.words import find_words
from cloudsched.domain.transitions.commit import Commit, Version
from cloudsched.domain.transitions.planning import occurrence_after
from cloudsched.engine.state.commits import Committer
from cloudsched.engine.tasks.scheduler import Scheduler
from cloudsched.errors import InvalidSchedule, Portable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.store import Store

SHOWN: Final = 5
"""The number of instants in a read-back."""
_OWN_ZONE: Final = re.compile(r"(utc|gmt|\d\s*z|[+-]\d{2}:?\d{2})\W*\Z", re.IGNORECASE)
"""An end of a text that says in which zone it is."""


def read_back(task: Task, assumed: Sequence[str] = (), locale: str = "en") -> ReadBack | None:
    """Return a task's schedule as it was understood, or None if the search for its instants gave up."""
    if task.max_runs is None:
        left = None
    else:
        left = max(0, task.max_runs - task.run_count)
    times = islice(_iterate_planned(task), SHOWN if left is None else min(SHOWN, left))
    return read_back_schedule(task.schedule, times, assumed, locale)


def read_back_schedule(
    schedule: Schedule, times: Iterator[datetime], assumed: Sequence[str] = (), locale: str = "en"
) -> ReadBack | None:
    """Return a schedule with these next instants as it was understood. See `read_back`."""
    zone = load_tzinfo(schedule.timezone)
    try:
        found = [at.astimezone(zone) for at in times]
        description = schedule.describe_next(found[0] if found else None, locale)
    except InvalidSchedule:  # so sparse that the search was given up, or the request's allowance is spent
        return None
    return ReadBack(
        description=description.text,
        is_summary=not description.is_exact,
        next=tuple(found),
        timezone=schedule.timezone,
        assumed=tuple(assumed),
    )


def assume_owner(content: dict[str, Any], task: Task) -> tuple[str, ...]:
    """Return a sentence if a creation did not name an owner."""
    is_open = "owner" not in content and task.owner == SYSTEM_OWNER and task.revision == 1
    if not is_open:
        return ()
    return (f"No owner was given, so it belongs to {SYSTEM_OWNER}.",)


_SECRET: Final = re.compile(
    r"(?:^|_|[a-z])(?:password|passwd|secret|token|api_?key|private_?key)\Z",
    re.IGNORECASE,
)
"""The ends of field names whose text is probably a secret."""
_LOOKED_AT: Final = 50
"""The number of fields of a payload whose names are looked at."""


def _warn_of_secrets(payload: object) -> list[str]:
    """Return a sentence for each secret among the first fields of a payload, which may have thousands."""
    if not isinstance(payload, dict):
        return []
    fields = islice(payload.items(), _LOOKED_AT)
    named = [name for name, value in fields if isinstance(value, str) and _SECRET.search(str(name)[-20:])]
    line = "is stored and shown as text: give the name of a secret, which the handler looks up."
    return [f"payload.{str(name)[:80]} {line}" for name in named]


def list_assumed(content: dict[str, Any], task: Task, noted: Sequence[str] = (), locale: str = "en") -> list[str]:
    """Return what a request did not say about a schedule, and what was assumed, one sentence each.

    What words can leave open is said in their language, and what only programs can in English.
    """
    given = content.get("schedule")
    schedule = task.schedule
    zone = schedule.timezone
    words = find_words(locale).assumed
    assumed = [*noted, *assume_owner(content, task), *_warn_of_secrets(content.get("payload"))]
    if given is None:
        if schedule.is_one_time:
            return [*assumed, "No schedule was given, so it runs once."]
        return assumed

    if isinstance(given, dict):
        text = given.get("cron")
    else:
        text = given

    named: Collection[str] = ()
    if isinstance(given, dict):
        named = given
    elif isinstance(given, Schedule):
        named = given.model_fields_set
    names_zone = "timezone" in content or "timezone" in named
    says_zone = names_zone or (isinstance(text, str) and _OWN_ZONE.search(text) is not None)
    if schedule.follows_owner:
        assumed.append(words["owner"].format(task.owner, zone))
    elif not says_zone and zone == "UTC" and (schedule.at is None or isinstance(text, str)):
        assumed.append(words["UTC"])
    elif not names_zone and not isinstance(given, str) and zone != "UTC":
        stays = f"The time zone stays {zone}." if task.revision > 1 else words["person"].format(zone)
        assumed += [] if stays in assumed else [stays]

    lost = islice(schedule.iter_lost(task.updated_at), SHOWN)
    assumed += (words["lost"].format(at.astimezone(load_tzinfo(zone)).date(), day) for at, day in lost)
    meanings = list_surprises(schedule, locale)
    assumed += (meaning for meaning in meanings if meaning not in assumed)
    if isinstance(given, dict) and given.get("rrule") and not given.get("dtstart") and schedule.dtstart is not None:
        assumed.append(f"No start was given, so it counts from {schedule.dtstart}.")
    return assumed


def _iterate_planned(task: Task) -> Iterator[datetime]:
    occurrence = task.next_execution_time
    while occurrence is not None:
        yield occurrence
        occurrence = occurrence_after(task, occurrence)


class WouldCommit(Portable, Exception):
    """Everything was checked, and this task would be stored now."""

    def __init__(self, task: Task) -> None:
        super().__init__(task.id)
        self.task = task


def make_dry_scheduler(engine: EngineContext) -> Scheduler:
    """Return a scheduler that reads and checks like another one, but raises `WouldCommit` instead of storing.

    It sends no dispatch, tells no parent, and writes no record.
    """
    store = cast("Any", _DryStore(engine.store))
    dry = replace(
        engine,
        store=store,
        committer=_DryCommitter(store),
        sender=cast("Any", _Silent()),
    )
    return Scheduler(dry, cast("Any", _Silent()))


class _DryStore:
    """A store that only reads. Everything else is the other store's."""

    def __init__(self, store: Store) -> None:
        self.load = store.load
        self.make_id = store.make_id
        self.records = _DryRecords(store.records)
        self.locks = _DryLocks(store.locks)


class _DryLocks:
    """Locks that are only read: those of quotas."""

    def __init__(self, locks: Any) -> None:  # noqa: ANN401 - of a feature
        self.load = locks.load


class _DryRecords:
    """Records that are only read: a link from a calendar to a task that is not stored would lead nowhere."""

    def __init__(self, records: Any) -> None:  # noqa: ANN401 - a RecordStore
        self.load = records.load
        self.list = records.list

    def write(self, *_: object) -> Version:
        return Version(0)


class _DryCommitter(Committer):
    """Finds one conflict: a task that is there already, which makes a creation an edit, or a repetition."""

    def commit(self, commit: Commit) -> NoReturn:
        if commit.base is not None:
            stored = None
        else:
            stored = self._store.load(commit.task.id)
        if stored is not None and stored.task.deleted_at is None:
            raise VersionConflict(f"task {commit.task.id}")
        raise WouldCommit(commit.task)


class _Silent:
    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_, **__: None
