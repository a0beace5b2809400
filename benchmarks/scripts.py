"""What a script costs: its own process, and the replay of its calls, beside what the same needs at the very least.

    python -m benchmarks.scripts

Starting is measured beside a Python that starts and does nothing (``python -I -S``), and beside QuickJS in this very
process, which is what leaving out the process would be: as quick as can be, and with nothing around it. Answering 100
calls is one message to the process and one back for each, beside the same promises settled in this process. A replay
is all of it, journal and store included, beside a Python handler that makes the same calls.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import quickjs  # type: ignore[import-untyped]  # it ships no types
from benchmarks.side_by_side import shown, timed

from cloudsched import App, Context, Schedule, Settings
from cloudsched.adapters.quickjs.interpreter import QuickJs
from cloudsched.config.sandbox import Sandbox
from cloudsched.engine.ports.interpreter import ScriptInput, ScriptResponse
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

MANY = 100
TRIVIAL = "return input.n + 1"
LOOP = f"let sum = 0; for (let n = 0; n < {MANY}; n++) sum += await tools.work({{n}}); return sum"
ALONE = f"""
    globalThis.sum = 0;
    (async () => {{
        for (let n = 0; n < {MANY}; n++) sum += await new Promise(settle => {{ globalThis.go = settle }});
    }})()
"""
"""The same loop, settled from outside."""

app = App(Settings())


@app.handler("work", tool=True)
def work(payload: dict[str, int]) -> int:
    """Be called."""
    return payload["n"]


@app.handler("never", tool=True)
def never(ctx: Context) -> None:
    """Wait for what does not come: whoever called this looks for it once a day, and is replayed for that."""
    ctx.wait_for("nothing")


@app.handler("python")
def python(ctx: Context) -> int:
    """Make the same calls without a script."""
    total: int = sum(ctx.call("work", {"n": number}).result() for number in range(MANY))
    ctx.call("never").result()
    return total


def bare_python(_: int) -> None:
    """Start a Python that does nothing, as a script's is started."""
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", "pass"],
        env={},
        cwd=os.sep,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )


def in_this_process(_: int) -> None:
    """Run the trivial script in an interpreter here."""
    context = quickjs.Context()
    context.set_memory_limit(64 << 20)
    assert context.eval("(function (input) { return input.n + 1 })({n: 1})") == 2


def settled_alone(_: int) -> None:
    """Run the loop in an interpreter here, and settle its promises one after the other."""
    context = quickjs.Context()
    context.eval(ALONE)
    for number in range(MANY):
        context.eval(f"go({number})")
        while context.execute_pending_job():
            pass
    assert context.eval("sum") == sum(range(MANY))


def in_a_process(interpreter: QuickJs, source: str, _: int) -> None:
    """Run a script as it is run in production, each call answered at once."""
    brief = ScriptInput(source=source, input={"n": 1}, task={}, tools=("work",), seed=1, now=START)
    answers: list[ScriptResponse] = []
    with interpreter.run(brief) as script:
        while not (reached := script.resume(answers, START)).has_ended:
            answers = [ScriptResponse(ask.number, ask.payload["n"]) for ask in reached.asks]


def replaying(**fields: Any) -> list[float]:
    """Return how many seconds each day took in which nothing happened but that a task was replayed."""
    with Simulation(app, sandbox=Sandbox(calls=MANY + 1)) as sim:
        soon = Schedule.once(START + timedelta(minutes=1))
        task = app.create(owner="ada", title="T", schedule=soon, **fields)
        sim.advance(timedelta(days=3))
        (run,) = app.get(task.id).runs
        assert run.steps > MANY
        return timed({"a day": lambda _: sim.advance(timedelta(days=1))}, 20, 2)["a day"]


def main() -> None:
    """Print both tables."""
    interpreter = QuickJs(memory=64 << 20, time=timedelta(seconds=5), output=256 << 10)
    ours = "a script, in its process"
    ways: dict[str, Callable[[int], object]] = {
        ours: partial(in_a_process, interpreter, TRIVIAL),
        "floor: python -I -S -c pass": bare_python,
        "QuickJS in this process": in_this_process,
    }
    floors: dict[str, float | None] = {"floor: python -I -S -c pass": None, "QuickJS in this process": None}
    shown("Begin and run a trivial script", timed(ways, 100, 10), ours, floors)
    answered = "a script, in its process"
    ways = {
        answered: partial(in_a_process, interpreter, LOOP),
        "floor: settled in this process": settled_alone,
    }
    shown(f"Answer {MANY} calls", timed(ways, 100, 10), answered, {"floor: settled in this process": None})
    seconds = {
        "a Python handler": replaying(handler="python"),
        "a script": replaying(script={"source": LOOP.replace("return", "await tools.never(); return")}),
    }
    shown(f"Replay {MANY} calls from the journal", seconds, "a script", {"a Python handler": None})


if __name__ == "__main__":
    main()
