"""A handler that ends its process, among others, under a supervisor that starts the process again."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tests.harness import ROOT, run_to_end

PROGRAM = """
import json, os, signal, sys, time
from datetime import timedelta
from pathlib import Path

import cloudsched
from cloudsched import App, Context, Settings
from cloudsched.config.access import Access
from cloudsched.domain.transitions import lost_attempts
from cloudsched.local import runner

lost_attempts.LOSS_PAUSE = timedelta(seconds=0.1)
runner.GRACE = timedelta(seconds=0.1)
end = {"exit": lambda: os._exit(70), "signal": lambda: os.kill(os.getpid(), signal.SIGTERM)}[sys.argv.pop(1)]
signal.signal(signal.SIGTERM, lambda *_: sys.exit(70))
app = App(Settings())


@app.handler("work", retry=False)
def work(ctx: Context) -> str:
    time.sleep(0.2)
    if ctx.task.id.startswith("poison"):
        end()
        time.sleep(60)
    time.sleep(0.4)
    return "done"


with cloudsched.embedded(app, "data", settings=Settings(access=Access(open=True))):
    names = sys.argv[1:]
    if not Path("created").exists():
        for name in names:
            app.create(id=name, handler="work")
        Path("created").touch()
    while not all(app.get(name).has_ended for name in names):
        time.sleep(0.02)
    found = {name: app.executions(name).items[0] for name in names}
    print(json.dumps({name: [each.status, each.error and each.error.message] for name, each in found.items()}))
"""


@pytest.mark.parametrize(("poisons", "end"), [(1, "exit"), (2, "exit"), (1, "signal")])
def test_it_is_found_and_takes_no_other_with_it(tmp_path: Path, poisons: int, end: str) -> None:
    """Each process of it dies three times. Each other run, which dies with it at first, has succeeded in the end.

    A signal to its own process is a stop in order for all others, and not for the handler that has sent it.
    """
    poisonous, others = [f"poison-{number}" for number in range(poisons)], [f"other-{number}" for number in range(6)]
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    starts = 0
    while starts < 20:
        starts += 1
        command = [sys.executable, str(program), end, *others[:3], *poisonous, *others[3:]]
        done = run_to_end(command, cwd=tmp_path, env=env)
        if done.returncode != 70:
            break
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: found[name][0] for name in others} == dict.fromkeys(others, "SUCCEEDED")
    for name in poisonous:
        status, message = found[name]
        assert status == "FAILED"
        assert "3 times in a row" in message
        assert "'work'" in message
    assert starts <= 1 + (3 if poisons == 1 else 5), "together at first, and then each by itself"
