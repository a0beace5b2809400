"""The rules of quick handlers notice what breaks them: without a guard of the single commit a history fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.simulation.faults import QUICK_PROFILES
from tests.simulation.invariants_runs import InvariantViolated
from tests.simulation.world import World

from cloudsched.engine.execution.claimed_run import ClaimedRun, QuickClaim
from cloudsched.engine.ports.store import Commit
from cloudsched.engine.state.commits import Committer

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.ports.store import VersionedTask

FIRST, MOST = 10, 60
"""From which history on, and in how many, a broken guard has to show."""
RIVALS = next(each for each in QUICK_PROFILES if each.name == "quick rivals")


def commit_on_any_version(patch: pytest.MonkeyPatch) -> None:
    """The result is committed whatever the version is by now: the precondition is gone."""
    commit = Committer.commit

    def forced(committer: Committer, change: Commit) -> VersionedTask:
        current = committer._store.load(change.task.id)  # noqa: SLF001 - what is broken
        if change.claimed is not None and current is not None:
            change = replace(change, base=current)
        return commit(committer, change)

    patch.setattr(Committer, "commit", forced)


def keep_the_first_claim(patch: pytest.MonkeyPatch) -> None:
    """After a conflict the run is claimed on what is stored now, without asking whether it may be."""

    def claim_again(run: ClaimedRun, stored: VersionedTask, claim: QuickClaim) -> VersionedTask:
        if stored.task.find_run(run.run.execution_id) is not None:
            return stored
        task = stored.task.model_copy(update={"runs": stored.task.runs_with(run.run)})
        run.quick_claim = replace(claim, commit=Commit(task, stored))
        return replace(stored, task=task)

    patch.setattr(ClaimedRun, "_claim_again", claim_again)


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
