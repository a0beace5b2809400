"""Measure scripts: the process that each one gets, and the replay of its calls, compared with a floor for each.

    python -m benchmarks.scripts

Starting a script is compared with a Python that starts and does nothing (``python -I -S``), and with QuickJS in this
process: the fastest way, but without any isolation. Answering 100 calls takes one message to the process and one back
for each call; it is compared with resolving the same promises in this process. A replay includes the journal and the
store; it is compared with a Python handler that makes the same calls.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import quickjs  # type: ignore[import-untyped]  # it ships no types
from benchmarks.side_by_side import show_comparison, time_alternately

from cloudsched import App, Context, Schedule, Settings
from cloudsched.adapters.quickjs.interpreter import QuickJs
from cloudsched.config.features import Sandbox
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
"""The same loop, whose promises the benchmark resolves from outside."""

app = App(Settings())


@app.handler("work", tool=True)
def work(payload: dict[str, int]) -> int:
    """Return the number in the payload."""
    return payload["n"]


@app.handler("never", tool=True)
def wait_forever(ctx: Context) -> None:
    """Wait for an event that never comes: the caller polls this call once a day and is replayed each time."""
    ctx.wait_for("nothing")


@app.handler("python")
def call_from_python(ctx: Context) -> int:
    """Make the same calls without a script."""
    total: int = sum(ctx.call("work", {"n": number}).result() for number in range(MANY))
    ctx.call("never").result()
    return total


def start_bare_python(_: int) -> None:
    """Start a Python that does nothing, with the same options as a script's process."""
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", "pass"],
        env={},
        cwd=os.sep,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )


def run_in_this_process(_: int) -> None:
    """Run the trivial script in an interpreter in this process."""
    context = quickjs.Context()
    context.set_memory_limit(64 << 20)
    assert context.eval("(function (input) { return input.n + 1 })({n: 1})") == 2


def resolve_in_this_process(_: int) -> None:
    """Run the loop in an interpreter in this process, and resolve its promises one after the other."""
    context = quickjs.Context()
    context.eval(ALONE)
    for number in range(MANY):
        context.eval(f"go({number})")
        while context.execute_pending_job():
            pass
    assert context.eval("sum") == sum(range(MANY))


def run_in_own_process(interpreter: QuickJs, source: str, _: int) -> None:
    """Run a script in its own process as in production, and answer each call at once."""
    script_input = ScriptInput(source=source, input={"n": 1}, task={}, tools=("work",), seed=1, now=START)
    responses: list[ScriptResponse] = []
    with interpreter.run(script_input) as script:
        while not (state := script.resume(responses, START)).has_ended:
            responses = [ScriptResponse(ask.number, ask.payload["n"]) for ask in state.asks]


def measure_replays(**fields: Any) -> list[float]:
    """Return how many seconds each simulated day took, on which nothing happened but one replay of the task."""
    with Simulation(app, sandbox=Sandbox(calls=MANY + 1)) as sim:
        soon = Schedule.once(START + timedelta(minutes=1))
        task = app.create(owner="ada", title="T", schedule=soon, **fields)
        sim.advance(timedelta(days=3))
        (run,) = app.get(task.id).runs
        assert run.steps > MANY
        return time_alternately({"a day": lambda _: sim.advance(timedelta(days=1))}, 20, 2)["a day"]


def main() -> None:
    """Measure the start, the calls and the replay, and print a table of each."""
    interpreter = QuickJs(memory=64 << 20, time=timedelta(seconds=5), output=256 << 10)
    ours = "a script, in its own process"
    candidates: dict[str, Callable[[int], object]] = {
        ours: partial(run_in_own_process, interpreter, TRIVIAL),
        "floor: python -I -S -c pass": start_bare_python,
        "QuickJS in this process": run_in_this_process,
    }
    floors: dict[str, float | None] = {"floor: python -I -S -c pass": None, "QuickJS in this process": None}
    show_comparison("Start and run a trivial script", time_alternately(candidates, 100, 10), ours, floors)
    candidates = {
        ours: partial(run_in_own_process, interpreter, LOOP),
        "floor: resolved in this process": resolve_in_this_process,
    }
    show_comparison(
        f"Answer {MANY} calls", time_alternately(candidates, 100, 10), ours, {"floor: resolved in this process": None}
    )
    seconds = {
        "a Python handler": measure_replays(handler="python"),
        "a script": measure_replays(script={"source": LOOP.replace("return", "await tools.never(); return")}),
    }
    show_comparison(f"Replay {MANY} calls from the journal", seconds, "a script", {"a Python handler": None})


if __name__ == "__main__":
    main()
