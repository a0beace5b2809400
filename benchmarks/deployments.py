"""Play random histories of a deployment against the fake Google Cloud; a run that is killed goes on where it stopped.

    nice -n 19 python -m benchmarks.deployments [--total 500] [--first-seed 0] [--jobs 2]

Each history deploys, upgrades, rolls back, moves to other databases, rotates the secret, opens and closes, looks, and
tears down, while scripts are killed, interrupted and refused (`tests/deployables/deployment_histories.py`). A history
that breaks a rule is kept as a file beside the state. At the end stands how often each script ended how.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.deployables.deployment_histories import play_history

ROOT = Path(__file__).parents[1]


def play(seed: int) -> tuple[int, dict[str, int], str, float]:
    """Play one history; return its seed, what happened how often, the rule that it broke, and processor seconds."""
    before = _measure()
    with tempfile.TemporaryDirectory(prefix="cloudsched-history-") as folder:
        try:
            seen, failure = dict(play_history(seed, Path(folder) / "project")), ""
        except Exception:  # noqa: BLE001 - any error is a finding
            seen, failure = {}, traceback.format_exc()
    return seed, seen, failure, _measure() - before


def _measure() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    """Play what is missing, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--total", type=int, default=500)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--state", type=Path, default=ROOT / "build/deployments.json")
    options = parser.parse_args()
    options.state.parent.mkdir(parents=True, exist_ok=True)
    told = json.loads(options.state.read_text("utf-8")) if options.state.exists() else {}
    done: dict[str, dict[str, int]] = told.get("done", {})
    failed: list[int] = told.get("failed", [])
    seconds: float = told.get("seconds", 0.0)
    missing = [seed for seed in range(options.first_seed, options.first_seed + options.total) if str(seed) not in done]
    with ProcessPoolExecutor(options.jobs) as pool:
        for seed, seen, failure, used in pool.map(play, missing):
            done[str(seed)] = seen
            seconds += used
            if failure:
                failed.append(seed)
                options.state.with_name(f"deployment-{seed}.txt").write_text(failure, "utf-8")
            options.state.write_text(json.dumps({"done": done, "failed": failed, "seconds": seconds}), "utf-8")
    counts = sum((Counter(each) for each in done.values()), Counter[str]())
    width = max(map(len, counts), default=0)
    for what, count in sorted(counts.items()):
        print(f"{what:{width}} {count:7,}")
    print(f"{len(done)} histories, {len(failed)} broke a rule {failed or ''}; {seconds:,.0f} s of the processor")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
