"""The recipe of the outbox (transactions.md): what its page shows, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.orm import Session
from tests.harness import wait_until
from tests.outbox.shops import open_django_database
from tests.recipes.conftest import Load

from cloudsched.testing import Simulation


def test_the_pages_own_test_passes(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The customer is reminded."""
    monkeypatch.chdir(tmp_path)
    scheduling = load("transactions.md", "scheduling")
    load("transactions.md", "test_orders").test_a_customer_is_reminded()
    scheduling.engine.dispose()


def test_an_order_and_its_reminder_are_stored_and_cancelled_together(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the relay runs beside the server."""
    monkeypatch.chdir(tmp_path)
    scheduling = load("transactions.md", "scheduling")
    service = load("transactions.md", "service")
    scheduling.Base.metadata.create_all(scheduling.engine)
    scheduling.outbox.create_table()

    def run_server() -> None:
        with Session(scheduling.engine, expire_on_commit=False) as session:
            scheduling.place_order(session, "bob")
            session.rollback()
            order = scheduling.place_order(session, "ada")
            session.commit()
            wait_until(lambda: [task.owner for task in sim.app.tasks().items] == ["ada"], "it is handed over")
            scheduling.pay_order(session, order)
            session.commit()
        wait_until(lambda: sim.app.get(order.reminder).status == "CANCELLED", "it is cancelled")

    with Simulation(scheduling.app) as sim:
        service.serve(run_server)
    scheduling.engine.dispose()


def test_django_writes_and_hands_over(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the table that its migration has made."""
    monkeypatch.chdir(tmp_path)
    scheduling = load("transactions.md", "scheduling")
    with open_django_database(f"sqlite:///{tmp_path / 'django.db'}", "default"), Simulation(scheduling.app) as sim:
        billing = load("transactions.md", "billing")
        task_id = billing.bill("ada")
        assert billing.outbox.hand_over() == 1
        assert sim.app.get(task_id).owner == "ada"
    scheduling.engine.dispose()
