"""Run random histories until there are enough of them; a run that is killed goes on where it stopped.

    nice -n 19 python -m benchmarks.histories [--total 20000] [--first-seed 1000]

All fault profiles of `tests/simulation` take turns, ten seeds at a time. A history that breaks a rule is kept as a file
beside the state, with its trace, and the run goes on. `pytest tests/simulation --seed N -k …` repeats it.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.simulation.test_histories import ALL_PROFILES, limit_records, run_history
from tests.simulation.threads import on_one_core

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


def run_batch(profile: FaultProfile, seeds: range, folder: Path) -> list[int]:
    """Run some histories of a profile; return the seeds of those that broke a rule."""
    failed = []
    for seed in seeds:
        failure = run_history(seed, profile)
        if failure is not None:
            failed.append(seed)
            (folder / f"{profile.name.replace(' ', '-')}-{seed}.txt").write_text(failure, "utf-8")
    return failed


def run(state: Path, total: int, first_seed: int) -> int:
    """Run histories until there are `total`; return how many broke a rule."""
    state.parent.mkdir(parents=True, exist_ok=True)
    content = load(state, first_seed)
    while (done := sum(content["next"].values()) - content["first"] * len(content["next"])) < total:
        profile = min(ALL_PROFILES, key=lambda each: content["next"][each.name])
        begin = content["next"][profile.name]
        seeds = range(begin, begin + BATCH)
        begun = time.monotonic()
        failed = run_batch(profile, seeds, state.parent)
        content["seconds"] += time.monotonic() - begun
        content["next"][profile.name] = begin + BATCH
        content["failed"] += [f"{profile.name} {seed}" for seed in failed]
        save(state, content)
        rate = (done + BATCH) / content["seconds"]
        verdict = f"BROKEN: {failed}" if failed else "ok"
        print(
            f"{done + BATCH:6} of {total}  {profile.name}: seeds {begin} to {seeds[-1]} {verdict}  ({rate:.1f}/s)",
            flush=True,
        )
    print(f"{done} histories, {len(content['failed'])} broke a rule: {content['failed']}")
    return len(content["failed"])


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--total", type=int, default=20_000)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--state", type=Path, default=ROOT / ".histories" / "state.json")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with on_one_core(), pytest.MonkeyPatch.context() as patch:
        limit_records(patch)
        sys.exit(bool(run(chosen.state, chosen.total, chosen.first_seed)))


if __name__ == "__main__":
    main()
