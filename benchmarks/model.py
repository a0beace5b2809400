"""Explore the engine's own code: every order, crash and lost answer of a small world; see `tests.model.explorer`.

    nice -n 19 python -m benchmarks.model [world …] [--most 1000000]     visit every state, print the table
    python -m benchmarks.model --controls [word …]                        take out one guard at a time, tell the stories

A world that is whole was explored to its last state. A control is the code without one guard: its story is a shortest
one in which a rule breaks. The seconds are those of the processor, in one process.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.model.controls import CONTROLS, without_guard
from tests.model.explorer import Model
from tests.model.stories import tell
from tests.model.worlds import WORLDS


def explore(names: list[str], most: int) -> int:
    """Explore worlds; return how many break a rule."""
    broken = total = 0
    print(f"{'world':<20} {'states':>10} {'transitions':>12} {'depth':>6} {'seconds':>8}  whole  about")
    for world in WORLDS.values():
        if names and world.name not in names:
            continue
        model = Model(world)
        begun = time.process_time()
        found = model.explore(most)
        seconds = time.process_time() - begun
        total += found.states
        line = f"{world.name:<20} {found.states:>10,} {found.transitions:>12,} {found.depth:>6} {seconds:>8.1f}"
        print(f"{line}  {'yes' if found.is_whole else 'no':<5}  {world.about}", flush=True)
        if found.rule is not None:
            broken += 1
            print(tell(model, found))
    print(f"{total:,} states")
    return broken


def control(words: list[str], most: int) -> int:
    """Take out each guard whose name or world has one of the words; return how many are not missed."""
    missed = 0
    for each in CONTROLS:
        if words and not any(word in each.name or word == each.world for word in words):
            continue
        with without_guard(each):
            model = Model(WORLDS[each.world])
            begun = time.process_time()
            found = model.explore(most)
            seconds = time.process_time() - begun
            print(f"\n# {each.name} ({each.world}: {found.states:,} states, {seconds:.1f} s)", flush=True)
            print(tell(model, found) if found.rule else "NO RULE BREAKS")
        missed += found.rule is None
    print(f"\n{missed} guards are not missed")
    return missed


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="world or word")
    parser.add_argument("--controls", action="store_true")
    parser.add_argument("--most", type=int, default=1_000_000, help="states of one world")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    run = control if chosen.controls else explore
    sys.exit(bool(run(chosen.names, chosen.most)))


if __name__ == "__main__":
    main()
