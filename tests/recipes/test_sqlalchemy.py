"""The recipe for SQLAlchemy: one transaction an attempt, and one charge an occurrence, whatever happens."""

from __future__ import annotations

from datetime import timedelta
from types import ModuleType

import pytest
from tests.instants import DAY
from tests.recipes.conftest import Load

from cloudsched import Schedule
from cloudsched.engine.execution.attempt import Attempt
from cloudsched.testing import Simulation


class Killed(BaseException):
    """The process ends here."""


PAYLOAD = {"customer": "ada", "amount": 5}


def open_database(load: Load) -> ModuleType:
    module = load("handlers.md", "handlers")
    module.Base.metadata.create_all(module.engine)
    return module


def count(module: ModuleType) -> int:
    with module.Session(module.engine) as session:
        return len(session.scalars(module.select(module.Charge)).all())


def test_each_occurrence_charges_once(load: Load) -> None:
    """The session commits when the handler returns, and sees what earlier attempts committed."""
    module = open_database(load)
    with Simulation(module.app) as sim:
        task = module.charge.create(payload=module.Subscription(**PAYLOAD), schedule=Schedule.every(DAY))
        sim.advance(timedelta(days=2, hours=1))
        assert [each.content for each in sim.executions(task.id)] == [5, 10, 15]
    assert count(module) == 3
    module.engine.dispose()


def test_an_attempt_that_fails_leaves_nothing(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has added is rolled back, and the retry adds it once."""
    module = open_database(load)
    failures = iter([ValueError("the network")])

    def total(charges: object) -> int:
        assert list(charges) == [5]  # type: ignore[call-overload]
        error = next(failures, None)
        if error:
            raise error
        return 5

    monkeypatch.setitem(vars(module), "sum", total)
    with Simulation(module.app) as sim:
        task = module.charge.run_now(module.Subscription(**PAYLOAD))
        assert count(module) == 0
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
        assert (execution.content, len(execution.attempts)) == (5, 2)
    assert count(module) == 1
    module.engine.dispose()


def test_a_second_attempt_after_a_crash_charges_nothing_more(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies between the session's commit and the store's: the next attempt finds the charge."""
    module = open_database(load)
    with Simulation(module.app) as sim:
        task = module.charge.run_now(module.Subscription(**PAYLOAD))

        def die(*_: object) -> None:
            raise Killed

        with monkeypatch.context() as dying:
            dying.setattr(Attempt, "finish", die)
            with pytest.raises(Killed):
                sim.queue.deliver_due()
        assert count(module) == 1
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
        assert (execution.content, len(execution.attempts)) == (5, 2)
    assert count(module) == 1
    module.engine.dispose()
