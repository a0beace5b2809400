"""Scripts that call each other while others replace and delete them: each run keeps to one version, to its end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from tests.scripts.script_harness import ToolApp
from tests.scripts.test_stored_scripts import ScriptStore

from cloudsched import App
from cloudsched.testing import Simulation

NAMES = ("a", "b", "c")
"""Each calls those behind it."""


def write_source(random: Random, name: str, version: int) -> str:
    """Return a script that says its version at its beginning and at its end, and calls and sleeps in between."""
    calls = [f"inside.push(await scripts.{other}({{}}))" for other in NAMES[NAMES.index(name) + 1 :]]
    steps = [step for step in (*calls, "await sleep(90)") if random.random() < 0.7]
    random.shuffle(steps)
    return ";\n".join(
        (
            f"const begun = (await tools.lookup({{id: {version}}})).name, inside = []",
            *steps,
            f"return {{name: '{name}', begun, ended: 'customer {version}', inside}}",
        )
    )


def list_runs(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a run and those that it called have returned."""
    yield content
    for each in content["inside"]:
        yield from list_runs(each)


@pytest.mark.parametrize("seed", range(3))
def test_a_run_keeps_its_version_whatever_becomes_of_the_script(app: App, seed: int) -> None:
    """What began with one version ends with it, also below others; what begins later has the newest.

    Scripts are replaced while their runs sleep, wait for a call, or have not begun.
    """
    random = Random(seed)  # noqa: S311 - a history is to be repeatable
    with Simulation(app, replay=seed % 2 == 1) as sim:
        scripts = ScriptStore(sim, ToolApp(app))
        versions: dict[str, list[tuple[datetime, str]]] = {name: [] for name in NAMES}

        def put(name: str) -> None:
            version = len(versions[name]) + 1
            assert scripts.put(name, write_source(random, name, version)).version == version
            versions[name].append((sim.now, f"customer {version}"))

        for name in NAMES:
            put(name)
        tasks = []
        for _ in range(5):
            tasks.append((name := random.choice(NAMES[:2]), scripts.create(name)))
            for _ in range(random.randint(1, 4)):
                sim.advance(timedelta(seconds=random.randint(5, 80)))
                put(random.choice(NAMES))
        sim.run_until_idle()
        runs = 0
        for name, task in tasks:
            (execution,) = sim.executions(task.id)
            assert execution.status == "SUCCEEDED", execution.error
            begun_at = execution.scheduled_for
            newest = [text for at, text in versions[name] if at <= begun_at]
            assert execution.content["begun"] == newest[-1]
            for run in list_runs(execution.content):
                assert run["begun"] == run["ended"], run
                runs += 1
    assert runs > len(tasks) // 2
