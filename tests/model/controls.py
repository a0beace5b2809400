"""Negative controls: the code with one guard taken out, by name. The explorer has to find what that guard prevents.

A guarded line of the code ends with ``# guard: NAME``, or stands below that where it is long. It may be reworded: a
control names the guard, and says which line stands in its place. `tests.model.effects` and `replay` have guards, too.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, cast

ROOT = Path(__file__).parents[2]
FILES = (
    *sorted((ROOT / "src/cloudsched").rglob("*.py")),
    ROOT / "tests/model/effects.py",
    ROOT / "tests/model/replay.py",
)
MARK = "# guard: "


@dataclass(frozen=True)
class Control:
    """What is taken out: one guard, or several that make up for each other."""

    name: str
    """What the code does without it."""
    world: str
    without: dict[str, str]
    """The guards, and the line that stands in place of each."""


@cache
def find_guards() -> dict[str, tuple[str, str]]:
    """Return the module and the qualified name of the function that has each guard."""
    found: dict[str, tuple[str, str]] = {}
    for path in FILES:
        text = path.read_text("utf-8")
        if MARK not in text:
            continue
        root = ROOT if path.is_relative_to(ROOT / "tests") else ROOT / "src"
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        functions = _find_functions(ast.parse(text))
        for number, line in enumerate(text.splitlines(), 1):
            if name := line.partition(MARK)[2]:
                assert name not in found, f"there are two guards called {name!r}"
                found[name] = module, next(each for each, lines in functions.items() if number in lines)
    return found


def _find_functions(tree: ast.Module) -> dict[str, range]:
    inner = [(f"{node.name}.", each) for node in tree.body if isinstance(node, ast.ClassDef) for each in node.body]
    return {
        prefix + node.name: range(node.lineno, (node.end_lineno or 0) + 1)
        for prefix, node in [*(("", each) for each in tree.body), *inner]
        if isinstance(node, ast.FunctionDef)
    }


def find_function(guard: str) -> FunctionType:
    assert guard in find_guards(), f"no line is marked {MARK}{guard}"
    module, name = find_guards()[guard]
    found: Any = import_module(module)
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    return cast("FunctionType", inspect.unwrap(getattr(found, "__func__", found)))


@contextmanager
def without_guard(control: Control) -> Iterator[None]:
    """Run the block with the guards taken out."""
    changes: dict[FunctionType, dict[str, str]] = defaultdict(dict)
    for guard, instead in control.without.items():
        changes[find_function(guard)][guard] = instead
    before = {function: function.__code__ for function in changes}
    for function, mine in changes.items():
        function.__code__ = _change(function, mine)
    try:
        yield
    finally:
        for function, code in before.items():
            function.__code__ = code


def _change(function: FunctionType, changes: dict[str, str]) -> CodeType:
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    statements = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.stmt)]
    for guard, instead in changes.items():
        start = next(number for number, line in enumerate(lines) if line.endswith(MARK + guard))
        while lines[start].lstrip().startswith("#"):
            start += 1
        end = next((_find_end(each) for each in statements if each.lineno == start + 1), start + 1)
        indent = lines[start][: -len(lines[start].lstrip())]
        lines[start:end] = [indent + instead, *[""] * (end - start - 1)]
    space: dict[str, Any] = {}
    changed = "\n".join(["from __future__ import annotations", *lines])
    exec(compile(changed, ", ".join(changes), "exec"), dict(function.__globals__), space)  # noqa: S102 - our own code
    made = space[function.__name__]
    return cast("FunctionType", inspect.unwrap(getattr(made, "__func__", made))).__code__


def _find_end(statement: ast.stmt) -> int:
    """Return the last line of a statement, or of its head if it has a body."""
    body: list[ast.stmt] = getattr(statement, "body", [])
    return (body[0].lineno - 1 if body else statement.end_lineno) or 0


UNCLAIMED = (
    "is_claim = whole.effects.run and not whole.executions; committed = Committed("
    "VersionedTask(whole.task, commit.base.version) if is_claim else (yield write), whole)"
)
"""The end of a run alone is stored, if its task still is as it was read before the handler was called."""
CONTROLS = (
    Control("an attempt is taken over while its lease lasts", "recurring", {"ended lease": "if run and run.lease:"}),
    Control("a lease that has ended is never closed", "recurring", {"ended lease": "if False:"}),
    Control("a dispatch of an older revision claims", "requests", {"older revision": "if False:"}),
    Control("a run with a live lease is claimed again", "recurring", {"live lease": "if False:"}),
    Control("a handler is called without a claim", "recurring", {"stored claim": UNCLAIMED}),
    Control(
        "a handler is called without a claim, where no dispatch comes twice",
        "single delivery",
        {"stored claim": UNCLAIMED},
    ),
    Control(
        "a lease is the dispatch's, not its executor's",
        "recurring",
        {"lease token": 'token_hash = lease_fingerprint(f"{dispatch.attempt:032x}")'},
    ),
    Control("a retry is claimed before it is due", "snooze", {"early retry": "if False:"}),
    Control("an occurrence is claimed before it is due", "distant", {"early occurrence": "if False:"}),
    Control("an occurrence starts while a run of its task is open", "trigger", {"open run": "if False:"}),
    Control(
        "an attempt follows of a task that is paused meanwhile", "requests", {"paused meanwhile": "if waiting is None:"}
    ),
    Control("an attempt follows by a dispatch of an older revision", "edit", {"revision of retry": "if False:"}),
    Control(
        "a claim does not count as started",
        "recurring",
        {"next occurrence": '"next_execution_time": task.next_execution_time,'},
    ),
    Control(
        "a result is stored by whoever lost the lease",
        "once",
        {"lease of outcome": "if run is None or run.lease is None:"},
    ),
    Control(
        "a lease is renewed by whoever lost it",
        "once",
        {"lease of heartbeat": "if run is None or run.lease is None or run.lease.until <= now:"},
    ),
    Control("a run of a cancelled task waits for its next attempt", "requests", {"final task": "if False:"}),
    Control("a failed run is tried without end", "recurring", {"last attempt": "if False:"}),
    Control(
        "what came due while a run was open is passed over without a record",
        "overlapping",
        {"overlap record": "past, records = task, ()"},
    ),
    Control("a process does not see that its own claim was committed", "faults", {"own claim": "known = None"}),
    Control("a handler begins although its lease has ended", "recurring", {"late start": "if False:"}),
    Control("nothing is dispatched after an attempt", "queue alone", {"next dispatch": "pass"}),
    Control(
        "a redelivery does not dispatch what a crash has left unsent", "queue alone", {"unsent dispatch": "if False:"}
    ),
    Control("an occurrence that is too early is dropped, not sent again", "queue alone", {"early dispatch": "pass"}),
    Control(
        "the sweep sends nothing for what is due",
        "recurring",
        {"overdue wakeups": "for wake in (*lease_expiries(task), *list_grant_expiries(task)):"},
    ),
    Control(
        "the sweep does not look at leases",
        "recurring",
        {"overdue wakeups": "for wake in (*executor_wakeups(task), *list_grant_expiries(task)):"},
    ),
    Control(
        "the sweep's repairs have the name of what was lost",
        "recurring",
        {"repair name": "result.dispatched += self._engine.sender.send(task, [wake], now, repair=0)"},
    ),
    Control("each repair has the same name", "recurring", {"repair number": "return 1"}),
    Control("leases do not wake the sweep", "recurring", {"lease wakes": "due = []"}),
    Control(
        "the next occurrence does not wake the sweep",
        "recurring",
        {"waiting wakes": "waiting = (None, *[_waits_until(task, run) for run in task.runs if run.lease is None])"},
    ),
    Control("waiting runs do not wake the sweep", "recurring", {"waiting wakes": "waiting = (_next_start(task),)"}),
    Control("a waiting run has no dispatch", "recurring", {"dispatch of run": "if False"}),
    Control("a deletion that was left unfinished wakes nobody", "requests", {"unfinished work": "if task.deferred:"}),
    Control(
        "the sweep does not complete a deletion",
        "requests",
        {"unfinished sweep": "if task.deferred and task.status is TaskStatus.CANCELLED:"},
    ),
    Control("a cancel forgets the runs that wait", "requests", {"cancelled runs": "return Commit(ended, records)"}),
    Control("a pause keeps the next occurrence", "requests", {"stopped plan": "stopped, records = task, ()"}),
    Control(
        "a resume forgets what came due before the pause",
        "pause",
        {
            "resumed plan": (
                "resumed = task.model_copy(update={'backlog': (), 'next_execution_time': occurrence_after(task, now)})"
            )
        },
    ),
    Control("a process takes a stale version for the present one", "recurring", {"version check": "if False:"}),
    Control(
        "a dispatch from before a deletion claims",
        "delete",
        {"deleted task": "if False:", "older revision": "if False:", "inactive task": "if False:"},
    ),
    Control(
        "a dispatch of an attempt that has ended claims the next one, before it is due",
        "recurring",
        {"earlier attempt": "if False:", "early retry": "if False:"},
    ),
    Control(
        "a dispatch of an occurrence that is done claims the next one, before it is due",
        "recurring",
        {
            "other occurrence": "if False:",
            "early occurrence": "if False:",
            "due now": ("is_alone = True"),
        },
    ),
    Control(
        "a lease is renewed after its end, and without its lock",
        "lock heartbeat",
        {
            "lease of heartbeat": "if run is None or run.lease is None or run.lease.token_hash != token_hash:",
            "held lock": "if False:",
        },
    ),
    Control("an execution that has succeeded is retried", "retry", {"succeeded run": "if False:"}),
    Control("a run that has ended stays open", "recurring", {"ended run": '"runs": task.runs,'}),
    Control(
        "a dispatch is sent for the day itself, however far", "distant", {"hop horizon": "at = max(now, wakeup.due_at)"}
    ),
    Control(
        "a hop has the name of the one before it",
        "distant",
        {"hop number": "hop = dispatch_or_hop(task, later, now, hop=dispatch.hop, clock_lag=clock_lag)"},
    ),
    Control("a place at a lock is not counted", "lock", {"lock limit": "if True:"}),
    Control("a lock that was acquired is not stored", "lock", {"stored lock": "return claim"}),
    Control(
        "a lock is written over another one's",
        "lock",
        {
            "version check": (
                "if any(stored.get(key) != expected for key, expected in writes.checks if not key.startswith('lock/')):"
            )
        },
    ),
    Control("a holder that died keeps its lock", "lock", {"dead holder": "return lock.holders"}),
    Control("a waiter that was notified and died keeps its place", "lock cancel", {"missed grant": "return False"}),
    Control("a lease is renewed, and its hold on the lock is not", "lock heartbeat", {"extended lock": "lock = None"}),
    Control("a step's result is not stored", "durable", {"journal entries": "return Commit(updated)"}),
    Control(
        "a suspended run keeps its lease",
        "durable",
        {
            "suspended lease": "",
            "released lease": (
                'return run.model_copy(update={"released_claim": claim, "released_by": released_by, **changes})'
            ),
        },
    ),
    Control("a cancel forgets the calls below", "children cancel", {"deferred cancel": "deferred=task.deferred,"}),
    Control(
        "the sweep does not complete a cancel",
        "children cancel",
        {"unfinished sweep": "if task.deleted_at is not None:"},
    ),
    Control(
        "a handler makes a call without asking whether its task has changed meanwhile",
        "children cancel",
        {"unchanged caller": "new = Commit(task, linked=guard)"},
    ),
    Control("a paused task is offered to workers", "worker", {"paused offer": "if task.pull is None:"}),
    Control(
        "a run that a worker has is offered again",
        "worker",
        {"taken run": "if run.waiting_for is not None or run.due_at > now:"},
    ),
    Control(
        "an attempt that is lost with its worker uses up a retry",
        "workers",
        {"uncounted loss": '"uncounted_attempts": run.uncounted_attempts,'},
    ),
    Control(
        "a claim is given back by whoever lost it",
        "workers",
        {"lease of release": "if run is None or run.lease is None:"},
    ),
    Control(
        "a task's dispatch does not wait for the caller's commit",
        "joined",
        {"joined dispatch": "self._dispatcher.create(message)"},
    ),
    Control(
        "a task is written before the caller's commit",
        "joined",
        {"joined writes": "self._processes.commit(lambda: self._lower(commit))"},
    ),
    Control(
        "the sweep sends nothing for what joined a caller's commit",
        "joined",
        {"overdue wakeups": "for wake in (*lease_expiries(task), *list_grant_expiries(task)):"},
    ),
    Control("nobody follows a calendar's change", "calendar", {"calendar follower": "pass"}),
    Control(
        "who follows a calendar's change gives up before it is written",
        "calendar",
        {"open change": "if False:", "calendar fence": "pass"},
    ),
    Control("who follows a calendar's change leaves its writer be", "calendar", {"calendar fence": "pass"}),
    Control(
        "what waits for the end of its jitter has not come due",
        "jitter",
        {"come due": "if start is not None and jittered_start(task, start) <= now:"},
    ),
    Control(
        "a new schedule skips what it has as well",
        "jitter",
        {"shared occurrences": "kept, gone = (), decision.kept + decision.early"},
    ),
)
