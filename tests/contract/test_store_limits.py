"""Limits of usage survive in each store: what is set, paused and told."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.contract.conftest import load
from tests.engine.harness import HOUR

from cloudsched import App, Context, Settings
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.ports.store import Store
from cloudsched.features.budgets.budgets import Budgets
from cloudsched.testing import Simulation

FEBRUARY = datetime(2027, 2, 1, tzinfo=UTC)


def test_a_limit_and_a_budget_of_tokens_are_kept(store: Store) -> None:
    """A process that starts later resumes what another has paused, and tells nobody again."""
    app = App(Settings())

    @app.handler("spend", access="users")
    def spend(ctx: Context) -> None:
        ctx.used(queries=10, tokens=100)

    with Simulation(app, store=store) as sim:
        limited = app.create(owner="ada", handler="spend", schedule="every 12 hours", max_queries_per_month=20)
        other = app.create(owner="ada", handler="spend", schedule="every 12 hours")
        Budgets.of(app.container).put("ada", max_tokens_per_month=300, by=OWN_CODE)
        sim.advance(48 * HOUR)
        assert load(store, limited.id).task.paused_until == FEBRUARY
        assert load(store, limited.id).task.highest_limits == {"max_queries_per_month": 20}
        assert load(store, other.id).task.status == "PAUSED"
        assert len(app.inbox("ada").items) == 2

    with Simulation(app, store=store, start=FEBRUARY - HOUR) as sim:
        sim.advance(2 * HOUR)
        assert {load(store, each.id).task.status for each in (limited, other)} == {"ACTIVE"}
        assert len(app.inbox("ada").items) == 2
