"""Find why a task ran, or did not run, on a certain day, from that day's records and the schedule.

The answer follows the state at that time, not only the present: pauses, edits, and the schedule that it had
then.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import say_subject
from cloudsched.domain.documents.execution import FAILURE_STATUSES, Execution, ExecutionStatus, Trigger
from cloudsched.domain.documents.run_counts import LATE, has_started_late
from cloudsched.domain.documents.task import FINAL_STATUSES, HistoryEntry, Task, TaskStatus
from cloudsched.domain.documents.verbs import EDITS, Action
from cloudsched.domain.explanation.explain import (
    explain_delivery,
    explain_run,
    explain_skipped,
    explain_status,
    say_caught_up,
    say_end,
    say_missed,
    with_message,
)
from cloudsched.domain.explanation.findings import Evidence, Explanation, Finding, Reason, say_status
from cloudsched.domain.explanation.moves import MovedRun, find_move
from cloudsched.domain.in_words import say_day, say_duration
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.schedules.planned_words import describe_planned
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.lifecycle import OWN_PAUSE_GOES_ON, end_pause_if_over
from cloudsched.domain.transitions.notices import name_instant, say_instant
from cloudsched.domain.transitions.planning import (
    find_sole_hold,
    jittered_start,
    latest,
    occurrence_from,
    waits_for_open_run,
)
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_RECORDS: Final = 50
"""The most records of a day that are read, the latest first."""
TOLD: Final = 3
"""The number of records, of dropped occurrences and of edits that are told one by one."""
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Day:
    """The day of an instant, by the clocks of a zone."""

    start: datetime
    end: datetime
    """The first instant of the next one."""

    def has(self, at: datetime) -> bool:
        """Return whether an instant is on it."""
        return self.start <= at < self.end

    def meets(self, record: Execution) -> bool:
        """Return whether a record is of an occurrence on it, or of several that may be."""
        return record.scheduled_for < self.end and _find_last(record) >= self.start


def _find_last(record: Execution) -> datetime:
    """Return the last occurrence that a record is of."""
    return record.covers.until if record.covers else record.scheduled_for


def find_day(task: Task, at: datetime) -> Day:
    """Return the day of an instant in a task's zone, or in UTC if the time zone data have no such zone."""
    zone = time_zones.load_shown(task.timezone)
    day = at.astimezone(zone).date()
    start = datetime.combine(day, time(), zone)
    end = datetime.combine(day + timedelta(days=1), time(), zone)
    return Day(start.astimezone(UTC), end.astimezone(UTC))


@dataclass(frozen=True, slots=True)
class _Pause:
    """The time during which a task was paused."""

    start: datetime
    end: datetime | None
    """The end that was set, if it still is paused. None if there is none."""
    entry: HistoryEntry | None
    why: str
    """The reason, if there is one. Of a pause that has ended it is without what was to come."""

    def has(self, at: datetime) -> bool:
        return self.start <= at and (self.end is None or at < self.end)


@dataclass(slots=True)
class _Question:
    """A question about a day, and the evidence that answers it."""

    evidence: Evidence
    at: datetime
    day: Day
    records: Sequence[Execution]
    """The records of the day, as far as they were read."""
    is_cut: bool
    """True if the day has more of them, perhaps also of the instant."""
    told: set[datetime] = field(default_factory=set)
    """The occurrences that some finding is about already."""

    @property
    def task(self) -> Task:
        return self.evidence.task

    def has_told(self, at: datetime) -> bool:
        """Return whether a finding is about an occurrence, by itself or among others."""
        ranges = [(each.scheduled_for, _find_last(each)) for each in self.records]
        ranges += [(each.next_at, each.until) for each in self.task.backlog]
        return at in self.told or any(first <= at <= last for first, last in ranges)

    def say(self, at: datetime) -> str:
        """Return an instant in the task's time zone, without a preposition."""
        return name_instant(self.task, at)


def explain_instant(
    evidence: Evidence,
    at: datetime,
    records: Sequence[Execution],
    *,
    is_cut: bool,
) -> Explanation:
    """Return why a task ran, or did not run, on the day of an instant, the most important reason first.

    `records` are those of the occurrences that were scheduled for that day, or of some around the instant. `is_cut`
    says that those around the instant may not be among them.
    """
    question = _Question(evidence, at, find_day(evidence.task, at), records, is_cut)
    findings = tuple(_find(question))
    task = evidence.task
    return Explanation(
        task_id=task.id,
        status=task.status,
        summary=findings[0].sentence,
        findings=findings,
        at=at,
    )


def _find(question: _Question) -> Iterator[Finding]:
    task = question.task
    day = question.day
    evidence = question.evidence
    found = [*_explain_runs(question), *_explain_records(question)]

    if day.end <= task.created_at:
        found.append(
            Finding(
                reason=Reason.NOT_CREATED,
                sentence=f"The task was created only {say_instant(task, task.created_at)}.",
                at=task.created_at,
            )
        )
    else:
        found += [*_explain_pauses(question), *_explain_end(question)]
        found += [*_explain_pending(question), *_explain_schedule(question)]

    found += [*_explain_clock(question), *_explain_changes(question), *_explain_left_out(question)]
    if not found:  # it was created later that day, say, and nothing is planned
        sentence = f"Nothing was due by {question.say(min(day.end, max(evidence.now, day.start)))}."
        found.append(Finding(reason=Reason.NOT_DUE, sentence=sentence, at=question.at))
    yield from found


def _explain_runs(question: _Question) -> Iterator[Finding]:
    runs = [run for run in question.task.runs if question.day.has(run.scheduled_for)]
    for run in sorted(runs, key=lambda each: abs(each.scheduled_for - question.at)):
        question.told.add(run.scheduled_for)
        finding = explain_run(question.evidence, run)
        state = "ended" if run.started_at else "begun"
        sentence = f"The occurrence of {question.say(run.scheduled_for)} has not {state}. {finding.sentence}"
        yield finding.model_copy(update={"sentence": sentence, "at": run.scheduled_for})


def sort_records(records: Sequence[Execution], at: datetime) -> list[Execution]:
    """Return the records of a day: the one at or next after an instant, what went wrong, the nearest. `TOLD` are told.

    Failures come before what began late or did not run.
    """
    nearest = sorted(records, key=lambda each: max(each.scheduled_for - at, at - _find_last(each)))
    meant = next((each for each in nearest if _find_last(each) >= at), None)
    return sorted(
        nearest,
        key=lambda each: (
            each is not meant,
            each.status not in FAILURE_STATUSES,
            each.status is ExecutionStatus.SUCCEEDED,
            not has_started_late(each),
        ),
    )


def list_due(evidence: Evidence, at: datetime) -> list[datetime]:
    """Return the first occurrences from an instant on that day, by the schedule of that time, as far as it is known."""
    question = _Question(evidence, at, find_day(evidence.task, at), (), is_cut=False)
    schedule, begins, _ = _find_schedule(question)
    found: list[datetime] = []
    after = max(at, begins) - _TICK
    try:
        while schedule is not None and len(found) < TOLD:
            following = schedule.next_after(after)
            if following is None or not question.day.has(following):
                break
            found.append(after := following)
    except InvalidSchedule:
        pass  # the explanation says so
    return found


def _explain_records(question: _Question) -> Iterator[Finding]:
    ended = [each for each in question.records if each.scheduled_for not in question.told]
    records = sort_records(ended, question.at)
    for record in records[:TOLD]:
        yield _explain_record(question, record)
        undelivered = (each for each in question.evidence.undelivered if each.execution_id == record.id)
        yield from (explain_delivery(question.task, each) for each in undelivered)
    if rest := records[TOLD:]:
        least = "at least " if len(records) >= MAX_RECORDS else ""
        others = sum(each.status is not ExecutionStatus.SUCCEEDED for each in rest)
        sentence = f"That day has {least}{len(rest):,} more of its records"
        sentence += f", of which {least}{others:,} did not succeed." if others else "."
        yield Finding(reason=Reason.OUTCOME, sentence=sentence, at=question.at)
    question.told.update(each.scheduled_for for each in records)


_KINDS: Final = {Trigger.MANUAL: "run that was triggered for", Trigger.BACKFILL: "backfill's run of"}


def _explain_record(question: _Question, record: Execution) -> Finding:
    kind = _KINDS.get(record.trigger, "occurrence of")
    due = _find_meant(question, record)
    sentence = f"The {kind} {question.say(due)}"
    if record.covers is not None and due > record.scheduled_for:
        spans = map(question.say, (record.scheduled_for, record.covers.until))
        sentence += f", like all that were due from {' to '.join(spans)},"
    sentence += f" {say_status(record.status)}"
    sentence = say_end(sentence, record)
    started = record.started_at or record.scheduled_for

    late = started - record.scheduled_for
    if late > LATE and record.trigger is not Trigger.BACKFILL:
        sentence = f"{sentence.rstrip('.')}. It began {say_duration(late)} after it was due, "
        sentence += f"{say_instant(question.task, started)}."
        planned = jittered_start(question.task, record.scheduled_for)
        if record.scheduled_for + LATE < planned <= started and record.trigger is Trigger.SCHEDULE:
            sentence += f" Its jitter, as it is now, puts it off until {question.say(planned)}."
        for first in record.attempts[:1]:
            if first.lock_waited_since:
                sentence += f" It waited for its lock since {question.say(first.lock_waited_since)}."
            elif first.worker:
                sentence += f" The worker {first.worker!r} took it."
    if delays := question.evidence.delays.get(record.id):
        sentence = f"{sentence.rstrip('.')}.{delays}"

    reason = Reason.ADJUSTED if record.is_left_out else Reason.OUTCOME
    return Finding(reason=reason, sentence=sentence, at=due, execution_id=record.id)


def _find_meant(question: _Question, record: Execution) -> datetime:
    """Return the occurrence of a record that is asked about: of several that share it, perhaps not the first."""
    if not record.scheduled_for < question.at <= _find_last(record):
        return record.scheduled_for
    due = list_due(question.evidence, question.at)[:1]
    return due[0] if due and due[0] <= _find_last(record) else record.scheduled_for


def list_pauses(task: Task) -> list[_Pause]:
    """Return when a task was paused, as far as its history has it. A pause that replaces another ends that."""
    pauses: list[_Pause] = []
    begun: HistoryEntry | None = None
    for entry in task.history:
        if entry.reason != OWN_PAUSE_GOES_ON and entry.action in {Action.PAUSED, Action.RESUMED, Action.CANCELLED}:
            if begun is not None:
                pauses.append(_Pause(begun.at, entry.at, begun, re.sub("[:;] it .*", ".", begun.reason or "")))
            begun = entry if entry.action is Action.PAUSED else None
    if task.status is TaskStatus.PAUSED:
        end = task.paused_until if task.goes_on_by_itself else None
        why = (begun and begun.reason) or ""
        pauses.append(_Pause(begun.at if begun else task.status_changed_at, end, begun, why))
    return pauses


def _explain_pauses(question: _Question) -> Iterator[Finding]:
    """Yield the pauses that cover a part of the day, the one with the instant first."""
    day = question.day
    end = min(day.end, question.evidence.now)
    pauses = [
        pause
        for pause in list_pauses(question.task)
        if pause.start < end and (pause.end is None or pause.end > day.start)
    ]

    for pause in sorted(pauses, key=lambda each: not each.has(question.at)):
        sentence = f"It was paused{name_author(pause.entry)} {say_instant(question.task, pause.start)}"
        sentence += ", and still is" if pause.end is None else f", until {question.say(pause.end)}"
        yield Finding(reason=Reason.PAUSED, sentence=with_message(sentence, pause.why), at=pause.start)


def name_author(entry: HistoryEntry | None) -> str:
    """Return who did something, to stand behind a verb, or nothing for the scheduler."""
    if entry is None or entry.by is None:
        return ""
    return f" by {say_subject(entry.by.subject)}"


def _explain_end(question: _Question) -> Iterator[Finding]:
    task = question.task
    if task.status in FINAL_STATUSES and task.status_changed_at < question.day.end:
        yield explain_status(question.evidence)


def _explain_pending(question: _Question) -> Iterator[Finding]:
    task = question.task
    day = question.day
    for due in task.backlog:
        if due.next_at < day.end and due.until >= day.start:
            first = question.say(latest(due.next_at, task.next_execution_time))
            sentence = f"Of what came due from {first} on, {say_caught_up(task)}."
            yield Finding(reason=Reason.BACKLOG, sentence=sentence, at=due.next_at)


def _find_schedule(question: _Question) -> tuple[Schedule | None, datetime, HistoryEntry | None]:
    """Return the schedule that the task had at the end of the day, since when that day, and the first later edit of it.

    None for a schedule whose text is not kept.
    """
    begins = max(question.day.start, question.task.created_at)
    moment = min(question.day.end, question.evidence.now + _TICK)  # what was done just now holds for what is to come
    for entry in question.task.history:
        change = next((each for each in entry.fields if each.field == "schedule"), None)
        if entry.at >= moment and (change or (entry.action is Action.MOVED and entry.by is None)):
            return _read_schedule(question.task, (change and change.before) or ""), begins, entry
        if change is not None and entry.action is Action.EDITED:
            begins = max(begins, entry.at)
    return question.task.schedule, begins, None


def _read_schedule(task: Task, text: str) -> Schedule | None:
    """Return an earlier schedule with what the present one has read from records, or None if that is unknown."""
    try:
        return Schedule.model_validate(json.loads(text)).resolved_like(task.schedule)
    except (ValueError, InvalidSchedule):
        return None


_PRESENT: Final = "Its schedule"


def _explain_schedule(question: _Question) -> Iterator[Finding]:
    """Yield the occurrences of the schedule on that day, as far as records and pauses have not told them."""
    schedule, begins, edit = _find_schedule(question)
    if schedule is None:
        assert edit is not None  # noqa: S101 - the present schedule is known
        changed = say_instant(question.task, edit.at)
        sentence = f"Its schedule was changed {changed}, and the one before is not kept."
        yield Finding(reason=Reason.NOT_KEPT, sentence=sentence, at=edit.at)
        return

    whose = _PRESENT
    if edit is not None:
        whose += " of that time"
    elif schedule.is_adjusted and question.day.start <= question.evidence.now:
        whose += ", by its calendars as they are now,"
    try:
        yield from _explain_adjustments(question, schedule, begins)
        first = _next_from(schedule, begins)
        if first is None or first >= question.day.end:
            if not question.told:
                yield _explain_nothing_due(question, schedule, begins, whose)
            return
        chosen = next(iter(list_due(question.evidence, question.at)), first)
        if not question.has_told(chosen):
            yield from _explain_occurrence(question, chosen, whose)
    except InvalidSchedule as error:
        sentence = f"The search for its occurrences was given up: {error.problem}."
        yield Finding(reason=Reason.NOT_KEPT, sentence=sentence, at=question.at)


def _next_from(schedule: Schedule, at: datetime) -> datetime | None:
    return schedule.next_after(at - _TICK)


def _explain_adjustments(question: _Question, schedule: Schedule, begins: datetime) -> Iterator[Finding]:
    after = begins - _TICK
    day = question.day
    for _ in range(TOLD):
        skipped = schedule.find_skipped(after, day.end - _TICK)
        if skipped is None:
            break
        after = skipped
        if not question.has_told(skipped):
            question.told.add(skipped)
            yield explain_skipped(question.task, schedule, skipped)
    occurrence = _next_from(schedule, begins)
    if occurrence is not None and day.has(occurrence) and (note := schedule.adjustment_note(occurrence)):
        yield Finding(reason=Reason.ADJUSTED, sentence=note, at=occurrence)


def _explain_nothing_due(question: _Question, schedule: Schedule, begins: datetime, whose: str) -> Finding:
    zone = time_zones.load_shown(question.task.timezone)
    words = describe_planned(schedule, None).text.removesuffix(f", {zone}")
    day = say_day(question.at.astimezone(zone))
    sentence = f"{whose} ({words}) has no occurrence on {day} ({zone})"
    if begins > question.day.start:
        sentence += f" from {question.say(begins)} on"
    if (left_out := _find_left_out(question, schedule, begins)) is not None:
        due, why = left_out
        sentence = f"What would be due {say_instant(question.task, due)} is {why}"
    following = _next_from(schedule, question.day.end)
    if whose == _PRESENT and following is None:
        sentence += ". There is no later one"
    elif whose == _PRESENT and following is not None:
        sentence += f". The next one after that is {say_instant(question.task, following)}"
    return Finding(reason=Reason.NOT_DUE, sentence=f"{sentence}.", at=following)


def _find_left_out(question: _Question, schedule: Schedule, begins: datetime) -> tuple[datetime, str] | None:
    """Return what would be due on the day without the exceptions or calendars of its schedule, and what those do."""
    plain = schedule.copy_unchecked(exdates=(), **schedule.no_adjustments)
    found = None if plain == schedule else _next_from(plain, begins)
    if found is None or not question.day.has(found):
        return None
    note = schedule.adjustment_note(found) or ""
    if schedule.exdates and not note:
        return found, "left out by an exception of its schedule"
    return found, f"moved to another day{note.removeprefix('Left out').rstrip('.')}"


def _explain_occurrence(question: _Question, occurrence: datetime, whose: str) -> Iterator[Finding]:
    now = question.evidence.now
    task = end_pause_if_over(question.task, now)
    has_more = list_due(question.evidence, occurrence + _TICK)
    what = "more occurrences later that day, and one" if has_more else "an occurrence"
    due = f"{whose} has {what} {say_instant(task, occurrence)}"
    if (task.next_execution_time or question.day.end) <= occurrence <= now and occurrence_from(
        task, occurrence
    ) == occurrence:
        found = Reason.DUE, f", which has not begun. Of what has come due, {say_caught_up(task)}"
        if waits_for_open_run(task):
            missed = say_missed(question.evidence, occurrence)
            found = Reason.OVERLAP, f". When the open run has ended, {missed}"
    elif question.is_cut:
        return
    else:
        found = _judge(task, occurrence, now)
    yield Finding(reason=found[0], sentence=f"{due}{found[1]}.", at=occurrence)


def _judge(task: Task, occurrence: datetime, now: datetime) -> tuple[Reason, str]:
    """Return what becomes of an occurrence that is to come, or that is past and neither planned nor recorded.

    Of the past, a pause is known. What is set now may have been set since.
    """
    hold = find_sole_hold(task)
    is_paused = any(each.has(occurrence) for each in list_pauses(task))
    is_over = task.status in FINAL_STATUSES and occurrence > task.status_changed_at
    reason, said = Reason.NOT_DUE, ", which does not run"
    if is_paused and hold is not None and hold.at <= occurrence:
        said = f". Of what comes due while it is paused, {say_caught_up(task)} when it goes on"
    elif is_paused and occurrence <= now:
        said += ": it was paused then"
    elif task.until is not None and occurrence > task.until:
        reason, said = Reason.ENDED, f", after {name_instant(task, task.until)}, until when it runs"
    elif (is_over or occurrence > now) and task.max_runs and task.run_count >= task.max_runs:
        said += f": its maxRuns of {task.max_runs} is reached"
    elif is_over:
        said += ": nothing starts"
    elif is_paused:
        said += " if it is still paused"
    elif occurrence > now:
        most = f", unless its maxRuns of {task.max_runs} is reached before" if task.max_runs else ""
        wait = ", and does not start before the open run has ended" if waits_for_open_run(task) else ""
        reason, said = Reason.SCHEDULED, f", which is still ahead{most}{wait}"
    else:
        kept = task.execution_retention
        since = f", since records are kept for {say_duration(kept)}" if kept and occurrence + kept <= now else ""
        reason, said = Reason.NOT_KEPT, f", of which no record is kept{since}"
    return reason, said


def _explain_clock(question: _Question) -> Iterator[Finding]:
    task = question.task
    day = question.day
    if not time_zones.in_use.knows(task.timezone):
        return
    zone = time_zones.in_use.zone(task.timezone)
    before, after = (zone.offset_at(int(at.timestamp())) for at in (day.start, day.end))
    if before == after:
        return
    shift = say_duration(timedelta(seconds=abs(after - before)))
    direction = "forward" if after > before else "back"
    sentence = f"The clocks in {task.timezone} go {direction} by {shift} that day."
    if after > before:
        then = "is left out" if task.schedule.gap == "SKIP" else "runs that much later"
        sentence += f" What is due at a time that does not exist {then}."
    yield Finding(reason=Reason.CLOCK_CHANGE, sentence=sentence, at=day.start)


def _explain_changes(question: _Question) -> Iterator[Finding]:
    task = question.task
    day = question.day
    edits = (each for each in task.history if each.action in EDITS)
    entries = [each for each in edits if day.has(each.at) or _is_about(question, each)][:TOLD]
    *_, later = _find_schedule(question)
    if later is not None and later not in entries:
        entries.append(later)

    for entry in entries:
        did, what = _say_change(entry)
        since = f"Later {did}" if entry.at >= day.end else did.capitalize()
        sentence = f"{since}{name_author(entry)} {say_instant(task, entry.at)}{what}."
        yield Finding(reason=Reason(entry.action), sentence=sentence, at=entry.at)


def _say_change(entry: HistoryEntry) -> tuple[str, str]:
    """Return what was done to a task, and to stand behind who and when, what of it that changed."""
    if entry.by is None:
        return "it was moved", f": {entry.reason or ''}".rstrip(": .")
    what = " → ".join(filter(None, _find_move(entry).write()))
    if entry.action is not Action.EDITED:
        return f"one of its runs was {entry.action.lower()}", what and f": {what}"
    names = ", ".join(each.field for each in entry.fields) or "nothing that is shown"
    return "it was edited", f": {names} ({what})" if what else f": {names}"


def _is_about(question: _Question, entry: HistoryEntry) -> bool:
    """Return whether an occurrence of the day was moved or left out, by its time before or after that."""
    zone = time_zones.load_shown(question.task.timezone)
    named = map(datetime.fromisoformat, filter(None, _find_move(entry)))
    return any(question.day.has(at if at.tzinfo else at.replace(tzinfo=zone)) for at in named)


def _find_move(entry: HistoryEntry) -> MovedRun:
    schedules = ((each.before, each.after) for each in entry.fields if each.field == "schedule")
    return find_move(*next(schedules, ("", "")))


def _explain_left_out(question: _Question) -> Iterator[Finding]:
    task = question.task
    whole = task.whole_history
    if whole and whole[0].number > 1 and whole[0].at > question.day.start:
        since = question.say(whole[0].at)
        sentence = f"Not all that was done with it before {since} is kept, so a pause or an edit may be missing here."
        yield Finding(reason=Reason.NOT_KEPT, sentence=sentence, at=question.at)
