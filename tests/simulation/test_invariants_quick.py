"""The rules of quick handlers notice what breaks them: without a guard of the single commit a history fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.simulation.faults import QUICK_PROFILES
from tests.simulation.invariants_runs import InvariantViolated
from tests.simulation.world import World

from cloudsched.engine.execution.claimed_run import ClaimedRun
from cloudsched.engine.execution.quick_run import QuickRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.ports.store import VersionedTask

FIRST, MOST = 10, 60
"""From which history on, and in how many, a broken guard has to show."""
RIVALS = next(each for each in QUICK_PROFILES if each.name == "quick rivals")


def commit_on_any_version(patch: pytest.MonkeyPatch) -> None:
    """The result is committed whatever the version is by now: the precondition is gone."""
    write = QuickRun._write  # noqa: SLF001 - what is broken

    def forced(run: QuickRun, stored: VersionedTask, *rest: Any, **more: Any) -> VersionedTask:
        current = run._engine.store.load(stored.task.id)  # noqa: SLF001 - the same
        return write(run, stored if current is None else replace(stored, version=current.version), *rest, **more)

    patch.setattr(QuickRun, "_write", forced)


def keep_the_first_claim(patch: pytest.MonkeyPatch) -> None:
    """After a conflict the run is claimed on what is stored now, without asking whether it may be."""

    def read(run: QuickRun, task_id: str) -> VersionedTask | None:
        stored = ClaimedRun._read(run, task_id)  # noqa: SLF001 - what is broken
        if stored is None or stored.task.find_run(run.run.execution_id) is not None:
            return stored
        return replace(stored, task=stored.task.model_copy(update={"runs": stored.task.runs_with(run.run)}))

    patch.setattr(QuickRun, "_read", read)


def run_histories() -> None:
    for seed in range(FIRST, FIRST + MOST):
        World(seed, RIVALS).run()


@pytest.mark.parametrize("break_it", [commit_on_any_version, keep_the_first_claim])
def test_a_single_commit_without_its_guards_breaks_a_rule(
    break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two results of one occurrence, or one of a task that was stopped."""
    break_it(monkeypatch)
    with pytest.raises(InvariantViolated):
        run_histories()
