"""Run random histories until there are enough of them; a run that is killed goes on where it stopped.

    nice -n 19 python -m benchmarks.histories [--total 20000] [--first-seed 1000] [--jobs 2]    of the engine
    nice -n 19 python -m benchmarks.histories --deployments [--total 500]                       of a deployment

Those of the engine take all fault profiles of `tests/simulation` in turn; those of a deployment play against the fake
Google Cloud of `tests/deployables`. A history that breaks a rule is kept as a file beside the state.
`pytest tests/simulation --seed N -k …` repeats one of the engine.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.deployables.deployment_histories import play_history
from tests.simulation.faults import ALL_PROFILES
from tests.simulation.test_histories import limit_records, run_history

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).parents[1]
BATCH = 10
"""How many seeds of a kind a process takes at a time."""


def play_deployment(seed: int) -> str | None:
    """Play a history of a deployment."""
    with tempfile.TemporaryDirectory(prefix="cloudsched-history-") as folder:
        try:
            play_history(seed, Path(folder) / "project")
        except Exception:  # noqa: BLE001 - any error is a finding
            return traceback.format_exc()
    return None


def prepare() -> None:
    """Get a process ready for histories."""
    logging.disable(logging.CRITICAL)
    limit_records(pytest.MonkeyPatch())


def run_batch(name: str, play: Callable[[int], str | None], first: int, folder: Path) -> list[int]:
    """Run `BATCH` histories of a kind; return the seeds of those that broke a rule."""
    failed = []
    for seed in range(first, first + BATCH):
        if (failure := play(seed)) is not None:
            failed.append(seed)
            (folder / f"{name.replace(' ', '-')}-{seed}.txt").write_text(failure, "utf-8")
    return failed


def run(kinds: Mapping[str, Callable[[int], str | None]], state: Path, total: int, first_seed: int, jobs: int) -> int:
    """Run histories of all kinds until there are `total`; return how many broke a rule."""
    state.parent.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = {"next": {}, "failed": [], "first": first_seed}
    if state.exists():
        content |= json.loads(state.read_text("utf-8"))
    seeds = content["next"] = {name: content["next"].get(name, content["first"]) for name in kinds}
    done, begun = sum(seeds.values()) - content["first"] * len(seeds), time.monotonic()
    with ProcessPoolExecutor(jobs, initializer=prepare) as pool:
        running: dict[Future[list[int]], tuple[str, int]] = {}
        taken = dict(seeds)
        while done + BATCH * len(running) < total or running:
            while len(running) < jobs and done + BATCH * len(running) < total:
                name = min(taken, key=taken.__getitem__)
                running[pool.submit(run_batch, name, kinds[name], taken[name], state.parent)] = name, taken[name]
                taken[name] += BATCH
            for ended in wait(running, return_when=FIRST_COMPLETED).done:
                name, first = running.pop(ended)
                failed = ended.result()
                # What was begun earlier and has not ended is run again if this process dies.
                seeds[name] = min([at for of, at in running.values() if of == name], default=taken[name])
                content["failed"] += [f"{name} {seed}" for seed in failed]
                save(state, content)
                done += BATCH
                print(
                    f"{done:6} of {total}  {name}: from seed {first} {f'BROKEN: {failed}' if failed else 'ok'}",
                    flush=True,
                )
    seconds = time.monotonic() - begun
    print(
        f"{done} histories from seed {content['first']}, {seconds:.0f} s since the start. Broken: {content['failed']}"
    )
    return len(content["failed"])


def save(state: Path, content: dict[str, Any]) -> None:
    """Write the state, whole or not at all."""
    beside = state.with_suffix(".part")
    beside.write_text(json.dumps(content, indent=1), "utf-8")
    beside.replace(state)


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deployments", action="store_true", help="histories of a deployment")
    parser.add_argument("--total", type=int, default=20_000)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    kinds: dict[str, Callable[[int], str | None]] = {
        each.name: partial(run_history, profile=each) for each in ALL_PROFILES
    }
    if chosen.deployments:
        kinds = {"deployment": play_deployment}
    state = ROOT / ".histories" / ("deployments.json" if chosen.deployments else "state.json")
    sys.exit(bool(run(kinds, state, chosen.total, chosen.first_seed, chosen.jobs)))


if __name__ == "__main__":
    main()
