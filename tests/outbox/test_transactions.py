"""What a transaction commits is a task, and what it rolls back is none: in each database, for each kind of caller."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from tests.harness import wait_until
from tests.outbox.shops import RolledBack, Shop

from cloudsched import App
from cloudsched.errors import InvalidInput, NotFound
from cloudsched.testing import Simulation

HOUR = timedelta(hours=1)
REMINDER: dict[str, Any] = {"handler": "remind", "payload": {"text": "Pay"}, "owner": "ada"}


def list_tasks(app: App) -> set[str]:
    return {task.id for task in app.tasks().items}


def test_a_committed_row_becomes_a_task_and_a_rolled_back_one_none(shop: Shop, app: App) -> None:
    """The row is part of the caller's transaction, with everything else that it writes."""
    with shop.begin() as caller:
        kept = caller.create(**REMINDER)
        assert not list_tasks(app)
    with suppress(RolledBack), shop.begin() as caller:
        caller.create(**REMINDER)
        raise RolledBack
    assert shop.outbox.hand_over() == 1
    assert list_tasks(app) == {kept}


def test_a_row_of_a_savepoint_shares_its_fate(shop: Shop, app: App) -> None:
    """Also if the savepoint is nested in another one, which is rolled back."""
    with shop.begin() as caller:
        kept = {caller.create(**REMINDER)}
        with caller.savepoint():
            kept |= {caller.create(**REMINDER)}
        with suppress(RolledBack), caller.savepoint():
            caller.create(**REMINDER)
            with caller.savepoint():
                caller.create(**REMINDER)
            raise RolledBack
        kept |= {caller.create(**REMINDER)}
    assert shop.outbox.hand_over() == 3
    assert list_tasks(app) == kept


def test_a_commit_wakes_the_relay(shop: Shop, app: App) -> None:
    """The relay polls once an hour here, so nothing else does; the end of a savepoint is not yet a commit."""
    with shop.outbox.relay(poll=HOUR):
        for number in range(3):
            task_id = f"task-{number}"
            with shop.begin() as caller, caller.savepoint():
                caller.create(**REMINDER, id=task_id)
            wait_until(lambda: task_id in list_tasks(app), "the row is handed over")  # noqa: B023 - called here


def test_a_mistake_writes_nothing(shop: Shop) -> None:
    """It is raised where the row would be written, and the caller may go on."""
    with shop.begin() as caller:
        mistakes: tuple[dict[str, Any], ...] = (
            {"handler": "unknown"},
            {"payload": {}},
            {"schedule": "every blue moon"},
        )
        for wrong in mistakes:
            with pytest.raises(InvalidInput):
                caller.create(**{**REMINDER, **wrong})
        with pytest.raises(InvalidInput):
            caller.cancel("a/b")
    assert shop.count_rows() == 0


def test_rows_of_one_task_are_handed_over_in_their_order(shop: Shop, sim: Simulation) -> None:
    """A creation, an edit of it, and a cancellation, which are written in this order."""
    with shop.begin() as caller:
        for title in ("First", "Second"):
            caller.create(**REMINDER, id="own", title=title, schedule="in 1 hour")
            caller.create(**REMINDER, id=f"other-{title}", schedule="in 1 hour")
        caller.cancel("other-First")
    assert shop.outbox.hand_over() == 5
    assert sim.app.get("own").title == "Second"
    assert sim.app.get("other-First").status == "CANCELLED"
    assert sim.app.get("other-Second").status == "ACTIVE"


def test_what_is_refused_is_told_in_the_row(shop: Shop, app: App) -> None:
    """It can be retried once its cause is gone, or discarded; the others are handed over meanwhile."""
    app.create(**{**REMINDER, "owner": "bob"}, id="taken", schedule="in 1 hour")
    with shop.begin() as caller:
        for task_id in ("taken", "free"):
            caller.create(**REMINDER, id=task_id)
        caller.cancel("unknown")
    assert shop.outbox.hand_over() == 1
    assert shop.outbox.hand_over() == 0
    taken, unknown = shop.outbox.rows()
    assert taken.error.startswith("InvalidInput: id: is taken")
    assert unknown.error == "NotFound: There is no task 'unknown'."
    shop.outbox.discard(unknown.id)
    app.delete("taken")
    shop.outbox.retry(taken.id)
    assert shop.outbox.hand_over() == 1
    assert app.get("taken").owner == "ada"
    assert not shop.outbox.rows()
    for change in (shop.outbox.retry, shop.outbox.discard):
        with pytest.raises(NotFound):
            change(taken.id)


def test_rows_that_were_handed_over_are_deleted_after_a_while(shop: Shop, sim: Simulation) -> None:
    """And no others."""
    with shop.begin() as caller:
        caller.create(**REMINDER)
        caller.cancel("unknown")
    shop.outbox.hand_over()
    for days, left in ((6, 2), (2, 1)):
        sim.advance(timedelta(days=days))
        shop.outbox._handover.purge()  # noqa: SLF001 - as the relay does once a minute
        assert shop.count_rows() == left
