"""The rule of budgets notices what breaks it: without the check, or with one that is not exact, a history fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.simulation.faults import BUDGET_PROFILES
from tests.simulation.invariants_runs import InvariantViolated
from tests.simulation.world import World

from cloudsched.domain.documents.owner_usage import Budget
from cloudsched.engine.usage.budgets import Budgets
from cloudsched.engine.usage.report import UsageSummation

MOST = 10
"""In how many histories a broken check has to show."""


def ask_nothing(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks, as before."""
    patch.setattr(Budgets, "find_refusal", lambda *_: None)


def ask_the_last_look(patch: pytest.MonkeyPatch) -> None:
    """What the last look found decides, up to five minutes ago."""

    def find_refusal(budgets: Budgets, owner: str) -> str | None:
        stored = budgets._store.records.load(Budget, owner)  # noqa: SLF001 - what is broken
        return stored.record.reason if stored is not None and stored.record.has_none_left else None

    patch.setattr(Budgets, "find_refusal", find_refusal)


def leave_out_what_has_changed(patch: pytest.MonkeyPatch) -> None:
    """Only what is summed up counts."""
    patch.setattr(UsageSummation, "list_unsummed", lambda *_: ())


def run_histories() -> None:
    for seed in range(MOST):
        World(seed, BUDGET_PROFILES[0]).run()


@pytest.mark.parametrize("broken", [ask_nothing, ask_the_last_look, leave_out_what_has_changed])
def test_a_check_that_is_not_exact_shows(
    monkeypatch: pytest.MonkeyPatch, broken: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """Within a few histories, by the rule's own words."""
    broken(monkeypatch)
    with pytest.raises(InvariantViolated, match="U1"):
        run_histories()


def test_the_rule_has_something_to_judge() -> None:
    """In these histories, budgets are asked and are used up."""
    claims, pauses = 0, 0
    for profile in BUDGET_PROFILES[:3]:
        world = World(0, profile)
        world.run()
        claims, pauses = claims + world.budgets.claims, pauses + world.budgets.pauses
    assert claims > 10
    assert pauses > 2
