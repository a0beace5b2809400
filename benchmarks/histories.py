"""Run random histories until there are enough of them; a run that is killed goes on where it stopped.

    nice -n 19 python -m benchmarks.histories [--total 20000] [--first-seed 1000] [--jobs 2]

All fault profiles of `tests/simulation` take turns, ten seeds at a time. A history that breaks a rule is kept as a file
beside the state, with its trace, and the run goes on. `pytest tests/simulation --seed N -k …` repeats it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.simulation.test_histories import ALL_PROFILES, limit_records, run_history

if TYPE_CHECKING:
    from tests.simulation.faults import FaultProfile

ROOT = Path(__file__).parents[1]
BATCH = 10


def load(state: Path, first_seed: int) -> dict[str, Any]:
    """Return the state of the run: the next seed of each profile, and what has failed."""
    found: dict[str, Any] = {"next": {}, "failed": [], "seconds": 0.0, "first": first_seed}
    if state.exists():
        found |= json.loads(state.read_text("utf-8"))
    found["next"] = {each.name: found["next"].get(each.name, found["first"]) for each in ALL_PROFILES}
    return found


def save(state: Path, content: dict[str, Any]) -> None:
    """Write the state, whole or not at all."""
    beside = state.with_suffix(".part")
    beside.write_text(json.dumps(content, indent=1), "utf-8")
    beside.replace(state)


def prepare() -> None:
    """Get a process ready for histories."""
    logging.disable(logging.CRITICAL)
    limit_records(pytest.MonkeyPatch())


def run_batch(profile: FaultProfile, first: int, folder: Path) -> tuple[list[int], float]:
    """Run `BATCH` histories of a profile; return the seeds of those that broke a rule, and the seconds."""
    failed, begun = [], time.monotonic()
    for seed in range(first, first + BATCH):
        failure = run_history(seed, profile)
        if failure is not None:
            failed.append(seed)
            (folder / f"{profile.name.replace(' ', '-')}-{seed}.txt").write_text(failure, "utf-8")
    return failed, time.monotonic() - begun


def run(state: Path, total: int, first_seed: int, jobs: int) -> int:
    """Run histories until there are `total`; return how many broke a rule."""
    state.parent.mkdir(parents=True, exist_ok=True)
    content = load(state, first_seed)
    seeds, wall = content["next"], time.monotonic()
    done = sum(seeds.values()) - content["first"] * len(seeds)
    with ProcessPoolExecutor(jobs, initializer=prepare) as pool:
        running: dict[Future[tuple[list[int], float]], FaultProfile] = {}
        while done + BATCH * len(running) < total or running:
            idle = [each for each in ALL_PROFILES if each not in running.values()]
            while idle and len(running) < jobs and done + BATCH * len(running) < total:
                profile = min(idle, key=lambda each: seeds[each.name])
                idle.remove(profile)
                running[pool.submit(run_batch, profile, seeds[profile.name], state.parent)] = profile
            for ended in wait(running, return_when=FIRST_COMPLETED).done:
                profile, (failed, seconds) = running.pop(ended), ended.result()
                first = seeds[profile.name]
                seeds[profile.name] = first + BATCH
                content["seconds"] += seconds
                content["failed"] += [f"{profile.name} {seed}" for seed in failed]
                save(state, content)
                done += BATCH
                verdict = f"BROKEN: {failed}" if failed else "ok"
                print(f"{done:6} of {total}  {profile.name}: from seed {first} {verdict}", flush=True)
    print(
        f"{done} histories from seed {content['first']}: {content['seconds']:.0f} s in {jobs} processes, "
        f"{time.monotonic() - wall:.0f} s since the start. {len(content['failed'])} broke a rule: {content['failed']}"
    )
    return len(content["failed"])


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--total", type=int, default=20_000)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--state", type=Path, default=ROOT / ".histories" / "state.json")
    chosen = parser.parse_args()
    sys.exit(bool(run(chosen.state, chosen.total, chosen.first_seed, chosen.jobs)))


if __name__ == "__main__":
    main()
