"""Negative controls: the code with one guard taken out, by name. The explorer has to find what that guard prevents."""

from __future__ import annotations

import inspect
import textwrap
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FunctionType


@dataclass(frozen=True)
class Control:
    """One guard that is taken out."""

    name: str
    """What the code does without it."""
    where: str
    """The function that has it: ``module:name``."""
    guard: str
    """Its source, which the function has exactly once."""
    instead: str
    world: str
    more: tuple[tuple[str, str, str], ...] = ()
    """Further guards that are taken out, since each makes up for the other: where, guard, instead."""


@dataclass(frozen=True)
class Spare:
    """A guard that no world misses, and why it stays."""

    where: str
    guard: str
    instead: str
    world: str
    why: str
    more: tuple[tuple[str, str, str], ...] = ()


def find_function(where: str) -> FunctionType:
    """Return a function by its module and name."""
    module, _, name = where.partition(":")
    found: Any = import_module(module if module.startswith("tests") else f"cloudsched.{module}")
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    return cast("FunctionType", inspect.unwrap(getattr(found, "__func__", found)))


@contextmanager
def without_guard(control: Control | Spare) -> Iterator[None]:
    """Run the block with the guards taken out."""
    changes = [(control.where, control.guard, control.instead), *control.more]
    functions = [find_function(where) for where, _, _ in changes]
    before = {function: function.__code__ for function in functions}
    for function in before:
        mine = [change for change, each in zip(changes, functions, strict=True) if each is function]
        function.__code__ = _change(function, mine)
    try:
        yield
    finally:
        for function, code in before.items():
            function.__code__ = code


def _change(function: FunctionType, changes: list[tuple[str, str, str]]) -> CodeType:
    """Return the code of a function without the guards."""
    source = textwrap.dedent(inspect.getsource(function))
    for where, guard, instead in changes:
        count = source.count(guard)
        assert count == 1, f"{where} has {guard!r} {count} times"
        source = source.replace(guard, instead)
    space: dict[str, Any] = {}
    changed = f"from __future__ import annotations\n{source}"
    exec(compile(changed, changes[0][0], "exec"), dict(function.__globals__), space)  # noqa: S102 - our own code
    made = space[function.__name__]
    return cast("FunctionType", inspect.unwrap(getattr(made, "__func__", made))).__code__


_CLAIM, _FINISH = "domain.transitions.claim", "domain.transitions.finish"
_PLANNING, _LIFECYCLE = "domain.transitions.planning", "domain.transitions.lifecycle"
_EXECUTOR, _ATTEMPTS = "engine.execution.executor", "engine.execution.attempts"
_RUN, _SWEEPER = "engine.execution.claimed_run", "engine.tasks.sweeper"

CONTROLS = (
    Control(
        "an attempt is taken over while its lease lasts",
        f"{_CLAIM}:on_dispatch",
        "run.lease.until <= now",
        "True",
        "recurring",
    ),
    Control(
        "a lease that has ended is never closed",
        f"{_CLAIM}:on_dispatch",
        "run.lease.until <= now",
        "False",
        "recurring",
    ),
    Control(
        "a dispatch of an older revision claims",
        f"{_CLAIM}:on_dispatch",
        "dispatch.revision != task.revision",
        "False",
        "requests",
    ),
    Control(
        "a run with a live lease is claimed again",
        f"{_CLAIM}:_on_open_run",
        "if run.lease:",
        "if False:",
        "recurring",
    ),
    Control(
        "a retry is claimed before it is due",
        f"{_CLAIM}:_on_open_run",
        "run.due_at > now",
        "False",
        "snooze",
    ),
    Control(
        "an occurrence is claimed before it is due",
        f"{_CLAIM}:_on_occurrence",
        "start > now",
        "False",
        "distant",
    ),
    Control(
        "an occurrence starts while a run of its task is open",
        f"{_CLAIM}:_on_occurrence",
        "task.runs and task.overlap is not Overlap.ALLOW and task.holds_back_schedule",
        "False",
        "trigger",
    ),
    Control(
        "an attempt follows of a task that is paused meanwhile",
        f"{_CLAIM}:_on_expired_lease",
        "waiting is None or not task.is_active",
        "waiting is None",
        "requests",
    ),
    Control(
        "an attempt follows by a dispatch of an older revision",
        f"{_CLAIM}:_on_expired_lease",
        "dispatch.revision != task.revision",
        "False",
        "edit",
    ),
    Control(
        "a claim does not count as started",
        f"{_CLAIM}:_claim_occurrence",
        '"next_execution_time": None if is_last else plan[number]',
        '"next_execution_time": task.next_execution_time',
        "recurring",
    ),
    Control(
        "a result is stored by whoever lost the lease",
        f"{_FINISH}:on_outcome",
        "run.lease.token_hash != token_hash",
        "False",
        "once",
    ),
    Control(
        "a lease is renewed by whoever lost it",
        f"{_FINISH}:on_heartbeat",
        "run.lease.token_hash != token_hash",
        "False",
        "once",
    ),
    Control(
        "a run of a cancelled task waits for its next attempt",
        f"{_FINISH}:_wait_for_retry",
        "task.status in FINAL_STATUSES",
        "False",
        "requests",
    ),
    Control(
        "a failed run is tried without end",
        f"{_FINISH}:_retry_or_finish",
        "run.attempt - run.attempts_before_suspension > task.retry.max_retries",
        "False",
        "recurring",
    ),
    Control(
        "what came due while a run was open is passed over without a record",
        f"{_FINISH}:_decide_overlaps",
        "past = apply_decision(task, decided)",
        "past = task",
        "overlapping",
    ),
    Control(
        "a process does not see that its own claim was committed",
        f"{_EXECUTOR}:Executor._decide",
        "run.lease and run.lease.token_hash == token_hash",
        "False",
        "faults",
    ),
    Control(
        "a handler begins although its lease has ended",
        f"{_ATTEMPTS}:AttemptRunner.start",
        "run.wake_at <= now",
        "False",
        "recurring",
    ),
    Control(
        "nothing is dispatched after an attempt",
        f"{_ATTEMPTS}:AttemptRunner.dispatch",
        "self.dispatch_wakeups(task, already_sent=sent_wakeups)",
        "None",
        "queue alone",
    ),
    Control(
        "a redelivery does not dispatch what a crash has left unsent",
        f"{_EXECUTOR}:Executor._repair_after_drop",
        "if dispatch.revision == task.revision:",
        "if False:",
        "queue alone",
    ),
    Control(
        "an occurrence that is too early is dropped, not sent again",
        f"{_EXECUTOR}:Executor._pass_over",
        "self._engine.sender.send_hop(stored.task, dispatch, until, self._engine.clock.now())",
        "None",
        "queue alone",
    ),
    Control(
        "the sweep sends nothing for what is due",
        f"{_SWEEPER}:Sweeper._repair",
        "*executor_wakeups(task), *lease_expiries",
        "*lease_expiries",
        "recurring",
    ),
    Control(
        "the sweep does not look at leases",
        f"{_SWEEPER}:Sweeper._repair",
        "*lease_expiries(task), ",
        "",
        "recurring",
    ),
    Control(
        "the sweep's repairs have the name of what was lost",
        f"{_SWEEPER}:Sweeper._repair",
        "repair=repair_number(overdue)",
        "repair=0",
        "recurring",
    ),
    Control(
        "each repair has the same name",
        f"{_PLANNING}:repair_number",
        "return minutes.bit_length() + 1 if minutes < 16 else 4 + minutes // 10",
        "return 1",
        "recurring",
    ),
    Control(
        "leases do not wake the sweep",
        f"{_PLANNING}:wake_instant",
        "due = [run.lease.until for run in task.runs if run.lease is not None]",
        "due = []",
        "recurring",
    ),
    Control(
        "the next occurrence does not wake the sweep",
        f"{_PLANNING}:wake_instant",
        "(_next_start(task), *[",
        "(None, *[",
        "recurring",
    ),
    Control(
        "waiting runs do not wake the sweep",
        f"{_PLANNING}:wake_instant",
        "[_waits_until(task, run) for run in task.runs if run.lease is None]",
        "[]",
        "recurring",
    ),
    Control(
        "a waiting run has no dispatch",
        f"{_PLANNING}:executor_wakeups",
        "if run.lease is None and (at := _waits_until(task, run)) is not None",
        "if False",
        "recurring",
    ),
    Control(
        "a deletion that was left unfinished wakes nobody",
        f"{_PLANNING}:wake_instant",
        "task.deleted_at is not None or task.deferred",
        "task.deferred",
        "requests",
    ),
    Control(
        "the sweep does not complete a deletion",
        f"{_SWEEPER}:Sweeper._repair",
        "task.deleted_at is not None or (",
        "(",
        "requests",
    ),
    Control(
        "a cancel forgets the runs that wait",
        f"{_LIFECYCLE}:cancel",
        "Transition(ended, (*cancelled, *records))",
        "Transition(ended, (*records,))",
        "requests",
    ),
    Control(
        "a pause keeps the next occurrence",
        f"{_LIFECYCLE}:pause",
        "take_records(stop_plan(task, now), now)",
        "(task, ())",
        "requests",
    ),
    Control(
        "a resume forgets what came due before the pause",
        f"{_LIFECYCLE}:resume",
        "resume_plan(task, held.at if (held := find_budget_pause(task)) and held.is_alone else now)",
        "task.model_copy(update={'backlog': (), 'next_execution_time': occurrence_after(task, now)})",
        "pause",
    ),
    Control(
        "a process takes a stale version for the present one",
        "tests.model.effects:Effects._commit",
        "stored.get(key) != expected for key, expected in writes.checks",
        "False for key, expected in writes.checks",
        "recurring",
    ),
    Control(
        "a dispatch from before a deletion claims",
        f"{_CLAIM}:on_dispatch",
        "if task.deleted_at is not None:",
        "if False:",
        "delete",
        (
            (f"{_CLAIM}:on_dispatch", "dispatch.revision != task.revision", "False"),
            (f"{_CLAIM}:on_dispatch", "not task.is_active", "False"),
        ),
    ),
    Control(
        "a dispatch of an attempt that has ended claims the next one, before it is due",
        f"{_CLAIM}:_on_open_run",
        "dispatch.attempt < run.attempt",
        "False",
        "recurring",
        ((f"{_CLAIM}:_on_open_run", "run.due_at > now", "False"),),
    ),
    Control(
        "a dispatch of an occurrence that is done claims the next one, before it is due",
        f"{_CLAIM}:_on_occurrence",
        "dispatch.execution_id not in {name, stamp(occurrence)}",
        "False",
        "recurring",
        (
            (f"{_CLAIM}:_on_occurrence", "start > now", "False"),
            (
                f"{_CLAIM}:_claim_occurrence",
                "due_occurrences(task, now,",
                "due_occurrences(task, task.next_execution_time or now,",
            ),
        ),
    ),
    Control(
        "a lease is renewed after its end, and without its lock",
        f"{_FINISH}:on_heartbeat",
        "run.lease.until <= now",
        "False",
        "lock heartbeat",
        (
            (
                f"{_RUN}:ClaimedRun.renew",
                "lock is not None and not is_held_by(lock.lock, task.id, execution_id, self._engine.clock.now())",
                "False",
            ),
        ),
    ),
    Control(
        "an execution that has succeeded is retried",
        "domain.transitions.requirements:require_retryable",
        "execution.status is ExecutionStatus.SUCCEEDED",
        "False",
        "retry",
    ),
    Control(
        "a run that has ended stays open",
        f"{_FINISH}:_finish_run",
        "task.runs_without(run.execution_id)",
        "task.runs",
        "recurring",
    ),
    Control(
        "a dispatch is sent for the day itself, however far",
        f"{_PLANNING}:dispatch_for",
        "wakeup.due_at if wakeup.due_at <= horizon else min(wakeup.due_at - HOP_MARGIN, horizon)",
        "wakeup.due_at",
        "distant",
    ),
    Control(
        "a hop has the name of the one before it",
        "engine.dispatch.sender:DispatchSender.send_hop",
        "hop=dispatch.hop + 1",
        "hop=dispatch.hop",
        "distant",
    ),
    Control(
        "a place at a lock is not counted",
        "domain.transitions.locks:acquire",
        "len(holders) + ahead < waiter.limit",
        "True",
        "lock",
    ),
    Control(
        "a lock that was acquired is not stored",
        f"{_EXECUTOR}:Executor._to_commit",
        "claim.having(lock=acquired.lock)",
        "claim",
        "lock",
    ),
    Control(
        "a lock is written over another one's",
        "tests.model.effects:Effects._commit",
        "stored.get(key) != expected for key, expected in writes.checks",
        "stored.get(key) != expected for key, expected in writes.checks if not key.startswith('lock/')",
        "lock",
    ),
    Control(
        "a holder that died keeps its lock",
        "domain.transitions.locks:_live_holders",
        "if one.until > now",
        "if True",
        "lock",
    ),
    Control(
        "a waiter that was notified and died keeps its turn",
        "domain.transitions.locks:Waiter.has_missed_turn",
        "self.notified_at + GRANT_TIMEOUT <= now",
        "False",
        "lock cancel",
    ),
    Control(
        "a lease is renewed, and its hold on the lock is not",
        f"{_RUN}:ClaimedRun.renew",
        "lock = self._engine.locks.extend(task.id, run, run.wake_at)",
        "lock = None",
        "lock heartbeat",
    ),
    Control(
        "a step's result is not stored",
        "engine.ports.store:Commit.build",
        "entries=transition.entries,",
        "",
        "durable",
    ),
    Control(
        "a suspended run keeps its lease",
        "domain.transitions.suspend:on_suspend",
        """"lease": None,""",
        "",
        "durable",
        ((f"{_FINISH}:_without_lease", """"lease": None, """, ""),),
    ),
    Control(
        "a cancel forgets the calls below",
        f"{_LIFECYCLE}:cancel",
        "deferred=task.deferred or may_have_children(task)",
        "deferred=task.deferred",
        "children cancel",
    ),
    Control(
        "the sweep does not complete a cancel",
        f"{_SWEEPER}:Sweeper._repair",
        "(task.deferred and task.status is TaskStatus.CANCELLED)",
        "False",
        "children cancel",
    ),
    Control(
        "a cancel counts as complete while a handler may still call",
        f"{_SWEEPER}:Sweeper._finish_cancel_or_delete",
        "are_all_cancelled and not can_still_call(stored.task, now)",
        "are_all_cancelled",
        "children cancel",
        (
            (
                "engine.tasks.scheduler:Scheduler._clear_deferred",
                "stored is None or can_still_call(stored.task, self._engine.clock.now())",
                "stored is None",
            ),
            (
                "engine.tasks.scheduler:Scheduler._cancel_descendants",
                "self._child_tasks.cancel_descendants(task) and not may_call",
                "self._child_tasks.cancel_descendants(task)",
            ),
        ),
    ),
    Control(
        "a paused task is offered to workers",
        "domain.transitions.offers:offered_runs",
        "task.pull is None or not task.is_active",
        "task.pull is None",
        "worker",
    ),
    Control(
        "a run that a worker has is offered again",
        "domain.transitions.offers:_mark_offered",
        "run.lease is not None or ",
        "",
        "worker",
    ),
    Control(
        "a claim is given back by whoever lost it",
        f"{_FINISH}:on_release",
        "run.lease.token_hash != token_hash",
        "False",
        "workers",
    ),
    Control(
        "a quick handler's result counts although its claim is lost",
        f"{_RUN}:ClaimedRun._claim_again",
        "if commit is None:",
        "if False:",
        "quick",
    ),
    Control(
        "a batch is recorded under the name that it was to have",
        "engine.delivery.handler:DeliveryHandler._send_batch",
        'str(outcome.content["messageId"])',
        "claim.message_id",
        "delivery",
    ),
    Control(
        "nobody follows a calendar's change",
        "engine.tasks.calendars:Calendars._write",
        "self._create_follower(calendar)",
        "None",
        "calendar",
    ),
    Control(
        "who follows a calendar's change gives up before it is written",
        "engine.tasks.follow_changes:FollowChange.run",
        "since < OPEN_FOR",
        "False",
        "calendar",
        (("engine.tasks.follow_changes:FollowChange.run", "self._fence(stored)", "pass"),),
    ),
    Control(
        "who follows a calendar's change leaves its writer be",
        "engine.tasks.follow_changes:FollowChange.run",
        "self._fence(stored)",
        "pass",
        "calendar",
    ),
)

SPARES = (
    Spare(
        f"{_CLAIM}:on_dispatch",
        "if task.deleted_at is not None:",
        "if False:",
        "requests",
        "a deletion raises the revision, too, and a deleted task is not active: it is only said more plainly",
    ),
    Spare(
        f"{_CLAIM}:on_dispatch",
        "not task.is_active",
        "False",
        "requests",
        "every pause and every cancel raises the revision, too: a second wall",
    ),
    Spare(
        f"{_CLAIM}:_on_open_run",
        "dispatch.attempt < run.attempt",
        "False",
        "recurring",
        "the next attempt is claimed only once it is due: this saves a hop",
    ),
    Spare(
        f"{_CLAIM}:_on_occurrence",
        "dispatch.execution_id not in {name, stamp(occurrence)}",
        "False",
        "recurring",
        "the next occurrence is claimed only once it is due: this saves a hop",
    ),
    Spare(
        f"{_FINISH}:on_heartbeat",
        "run.lease.until <= now",
        "False",
        "lock heartbeat",
        "its hold on the lock has ended with the lease, and that is asked as well",
    ),
    Spare(
        f"{_RUN}:ClaimedRun.renew",
        "lock is not None and not is_held_by(lock.lock, task.id, execution_id, self._engine.clock.now())",
        "False",
        "lock heartbeat",
        "a lease that has ended is not renewed: the two ends are one instant",
    ),
)
"""Each has a control together with what makes up for it."""
