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

    world: str
    without: dict[str, str]
    """The guards, and the line that stands in place of each."""

    @property
    def name(self) -> str:
        return f"{self.world} without {', '.join(self.without)}"


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
    *(
        Control("recurring", {guard: "if False:"})
        for guard in ("ended lease", "live lease", "last attempt", "late start", "version check")
    ),
    *(Control("requests", {guard: "if False:"}) for guard in ("older revision", "final task")),
    Control("snooze", {"early retry": "if False:"}),
    Control("distant", {"early occurrence": "if False:"}),
    Control("trigger", {"open run": "if False:"}),
    Control("edit", {"revision of retry": "if False:"}),
    *(Control("queue alone", {guard: "pass"}) for guard in ("next dispatch", "early dispatch")),
    Control("queue alone", {"unsent dispatch": "if False:"}),
    Control("retry", {"succeeded run": "if False:"}),
    *(Control("calendar", {guard: "pass"}) for guard in ("calendar follower", "calendar fence")),
    Control("recurring", {"ended lease": "if run and run.lease:"}),
    Control("recurring", {"stored claim": UNCLAIMED}),
    Control("single delivery", {"stored claim": UNCLAIMED}),
    Control("recurring", {"lease token": 'token_hash = lease_fingerprint(f"{dispatch.attempt:032x}")'}),
    Control("requests", {"paused meanwhile": "if waiting is None:"}),
    Control("recurring", {"next occurrence": '"next_execution_time": task.next_execution_time,'}),
    Control("once", {"lease of outcome": "if run is None or run.lease is None:"}),
    Control("once", {"lease of heartbeat": "if run is None or run.lease is None or run.lease.until <= now:"}),
    Control(
        "overlapping",
        {"overlap record": "rest, passed = pass_over(rest, decision.decided, now, decision.kept)[0], ()"},
    ),
    Control("faults", {"own claim": "if False:"}),
    Control("recurring", {"overdue wakeups": "for wake in (*lease_expiries(task), *list_grant_expiries(task)):"}),
    Control("recurring", {"overdue wakeups": "for wake in (*executor_wakeups(task), *list_grant_expiries(task)):"}),
    Control("recurring", {"repair name": "result.dispatched += self._engine.sender.send(task, [wake], now, repair=0)"}),
    Control("recurring", {"repair number": "return 1"}),
    Control("recurring", {"lease wakes": "pass"}),
    Control("recurring", {"start wakes": "pass"}),
    Control("recurring", {"waiting wakes": "pass"}),
    Control("recurring", {"dispatch of run": "if False:"}),
    Control("requests", {"unfinished work": "if task.deferred:"}),
    Control("requests", {"unfinished sweep": "if task.deferred and task.status is TaskStatus.CANCELLED:"}),
    Control("requests", {"cancelled runs": "return Commit(ended, records)"}),
    Control("requests", {"stopped plan": "stopped, records = task, ()"}),
    Control(
        "pause",
        {
            "resumed plan": "resumed = task.model_copy("
            "update={'backlog': (), 'next_execution_time': occurrence_after(task, now)})"
        },
    ),
    Control("delete", {"deleted task": "if False:", "older revision": "if False:", "inactive task": "if False:"}),
    Control("recurring", {"earlier attempt": "if False:", "early retry": "if False:"}),
    Control(
        "recurring", {"other occurrence": "if False:", "early occurrence": "if False:", "due now": "is_alone = True"}
    ),
    Control(
        "lock heartbeat",
        {
            "lease of heartbeat": "if run is None or run.lease is None or run.lease.token_hash != token_hash:",
            "held lock": "if False:",
        },
    ),
    Control("recurring", {"ended run": '"runs": task.runs,'}),
    Control("distant", {"hop horizon": "if False:"}),
    Control(
        "distant", {"hop number": "hop = dispatch_or_hop(task, later, now, hop=dispatch.hop, clock_lag=clock_lag)"}
    ),
    Control("lock", {"lock limit": "if True:"}),
    Control("lock", {"stored lock": "return claim"}),
    Control(
        "lock",
        {"version check": "if any(stored.get(key) != one for key, one in writes.checks if key[:5] != 'lock/'):"},
    ),
    Control("lock", {"dead holder": "if (one.task_id, one.execution_id) != leaving:"}),
    Control("lock cancel", {"missed grant": "return False"}),
    Control("lock heartbeat", {"extended lock": "return commit"}),
    Control("durable", {"journal entries": "return Commit(updated)"}),
    Control(
        "durable",
        {
            "suspended lease": "",
            "released lease": "return run.model_copy("
            "update=dict(released_claim=claim, released_by=released_by, **changes))",
        },
    ),
    Control("children cancel", {"deferred cancel": "deferred=task.deferred,"}),
    Control("children cancel", {"unfinished sweep": "if task.deleted_at is not None:"}),
    Control("children cancel", {"unchanged caller": "new = Commit(task, linked=guard)"}),
    Control("worker", {"paused offer": "if task.pull is None:"}),
    Control("worker", {"taken run": "if run.waiting_for is not None or run.due_at > now:"}),
    Control("workers", {"uncounted loss": '"uncounted_attempts": run.uncounted_attempts,'}),
    Control("workers", {"lease of release": "if run is None or run.lease is None:"}),
    Control("joined", {"joined dispatch": "self._dispatcher.create(message)"}),
    Control("joined", {"joined writes": "self._processes.commit(lambda: self._lower(commit))"}),
    Control("joined", {"overdue wakeups": "for wake in (*lease_expiries(task), *list_grant_expiries(task)):"}),
    Control("calendar", {"open change": "if False:", "calendar fence": "pass"}),
    Control("jitter", {"come due": "if start is not None and jittered_start(task, start) <= now:"}),
    Control("jitter", {"shared occurrences": "kept, gone = (), decision.kept + decision.early"}),
)
