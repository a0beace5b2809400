"""An execution runs what it began with, to its end: an edit concerns later runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.authorities import as_user
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND, Create, only_run

from cloudsched import App, Context, EventSender, Schedule, Settings, Task
from cloudsched.domain.documents.authority import SenderRole
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.json_limits import MAX_DOCUMENT_BYTES, document_size, stored_size
from cloudsched.domain.transitions.run_records import MAX_SPEC_BYTES
from cloudsched.engine.ports.search import ExecutionQuery
from cloudsched.errors import Forbidden, InvalidInput
from cloudsched.testing import START, Simulation

OWNER = EventSender(role=SenderRole.OWNER, subject="user:ada")


class Shop:
    """What the handlers did, and whether the next one fails."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.failed: list[tuple[str, dict[str, Any]]] = []
        self.is_broken = False

    def note(self, what: str) -> None:
        self.did.append(what)


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def app(shop: Shop) -> App:
    """A shop whose handlers charge first and deliver later, in several ways."""
    app = App(Settings())

    def hook(task: Task, _: Execution) -> None:
        shop.failed.append((task.handler, task.payload))

    @app.handler("trial", access="users", on_failure=hook)
    def trial(ctx: Context) -> str:
        ctx.step("pay", shop.note, "charged nothing")
        ctx.sleep(HOUR)
        ctx.step("deliver", shop.note, "trial delivered")
        return "trial"

    @app.handler("premium", access="users")
    def premium(ctx: Context) -> str:
        ctx.step("pay", shop.note, "charged 1000")
        ctx.sleep(HOUR)
        ctx.step("deliver", shop.note, "premium delivered")
        return "premium"

    @app.handler("order", access="users", retry=2, on_failure=hook)
    def order(ctx: Context, payload: dict[str, Any]) -> str:
        amount = payload.get("amount", 0)
        ctx.step("pay", shop.note, f"charged {amount}")
        ctx.sleep(HOUR)
        if shop.is_broken:
            raise RuntimeError("no parcel")
        ctx.step("ship", shop.note, f"shipped {amount}")
        return f"{amount}"

    @app.handler("plain", access="users", retry=1, on_failure=hook)
    def plain(ctx: Context, payload: dict[str, Any]) -> str:
        shop.note(f"{ctx.task.handler} {payload.get('amount', 0)}")
        if shop.is_broken:
            raise RuntimeError("broken")
        return "plain"

    @app.handler("lax", access="users")
    def lax(ctx: Context) -> str:
        ctx.wait_for("approved")
        ctx.sleep(HOUR)
        shop.note("asked")
        return "lax"

    @app.handler("payout")
    def payout(ctx: Context, payload: dict[str, Any]) -> str:
        ctx.wait_for("approved", by=("admin",))
        ctx.sleep(HOUR)
        shop.note(f"paid {payload.get('amount', 0)}")
        return "paid"

    return app


@pytest.fixture
def create(sim: Simulation) -> Callable[..., Task]:
    def make(handler: str, **fields: Any) -> Task:
        usual: dict[str, Any] = {"owner": "ada", "schedule": Schedule.once(START)}
        return sim.app.create(handler=handler, **(usual | fields))

    return make


def end(sim: Simulation, task: Task) -> Execution:
    """Let a task run to its end, and return its only execution."""
    sim.advance(DAY)
    return only_run(sim, task)


@pytest.mark.parametrize("is_durable", [True, False])
def test_all_attempts_have_the_payload_of_the_first(
    sim: Simulation, shop: Shop, create: Create, *, is_durable: bool
) -> None:
    """Also if an edit comes between two attempts; what is called on failure is told of what ran."""
    handler = "order" if is_durable else "plain"
    shop.is_broken = True
    task = create(handler, payload={"amount": 1}, retry={"maxRetries": 1, "firstDelay": "PT2H"})
    sim.advance(HOUR + MINUTE)
    sim.app.update(task.id, handler="trial", payload={})
    execution = end(sim, task)
    assert execution.status == "FAILED"
    assert [each.number for each in execution.attempts] == [1, 2]
    assert set(shop.did) == {"charged 1" if is_durable else "plain 1"}
    assert shop.failed == [(handler, {"amount": 1})]
    assert execution.handler == handler


def test_a_retry_by_hand_runs_what_the_execution_began_with(sim: Simulation, shop: Shop, create: Create) -> None:
    """What was charged before the failure is what is shipped after it, however the task was edited since."""
    shop.is_broken = True
    task = create("order", payload={"amount": 1}, retry={"maxRetries": 0})
    assert end(sim, task).status == "FAILED"
    sim.app.update(task.id, payload={"amount": 1000})
    shop.is_broken = False
    sim.app.retry(task.id)
    sim.advance(SECOND)
    sim.app.update(task.id, payload={"amount": 2000})
    execution = end(sim, task)
    assert shop.did == ["charged 1", "shipped 1"]
    assert (execution.status, execution.content) == ("SUCCEEDED", "1")


def test_an_edit_concerns_what_has_not_begun(sim: Simulation, shop: Shop, create: Create) -> None:
    """The next occurrence, and a run that waits for its lock, run what the task says then."""
    task = create("plain", payload={"amount": 1}, schedule=Schedule.every(DAY, start=START))
    sim.advance(MINUTE)
    sim.app.update(task.id, payload={"amount": 2})
    sim.advance(DAY)
    assert shop.did == ["plain 1", "plain 2"]
    assert sim.app.get(task.id).earlier_definitions is None


def test_a_payload_of_a_triggers_own_stays_with_its_handler(sim: Simulation, shop: Shop, create: Create) -> None:
    """It was checked for that handler: an edit before the run starts gives it to no other."""
    task = create("plain", pull="q")
    sim.advance(MINUTE)
    sim.app.trigger(task.id, {"amount": 7})
    sim.app.update(task.id, handler="payout", pull=None)
    sim.advance(MINUTE)
    assert "plain 7" in shop.did


def test_many_edits_keep_one_copy_for_each_beginning(sim: Simulation, create: Create) -> None:
    """What no open run began with is not kept, and what the last of them began with goes with it."""
    task = create("order", payload={"amount": 1})
    sim.advance(MINUTE)
    for amount in range(2, 6):
        sim.app.update(task.id, payload={"amount": amount})
    assert [each.payload for each in sim.app.get(task.id).earlier_definitions or ()] == [{"amount": 1}]
    sim.app.update(task.id, title="Other")
    end(sim, task)
    assert sim.app.get(task.id).earlier_definitions is None


def test_what_open_runs_began_with_fits_the_tasks_document(sim: Simulation, create: Create) -> None:
    """An edit that leaves it no room is refused, and says so; the run goes on."""
    large = {"text": "x" * 120_000}
    task = create("order", payload={"amount": 0, **large})
    sim.advance(MINUTE)
    for amount in range(1, MAX_SPEC_BYTES // stored_size(large)):
        sim.app.update(task.id, payload={"amount": amount, **large})
        sim.app.trigger(task.id)
        sim.advance(MINUTE)
    with pytest.raises(InvalidInput, match="no room"):
        sim.app.update(task.id, payload={"amount": -1, **large})
    assert document_size(("tasks", task.id), sim.app.get(task.id).to_stored()) < MAX_DOCUMENT_BYTES
    sim.advance(DAY)
    assert [each.content for each in sim.executions(task.id)] == ["0", "1", "2", "3"]
    sim.app.update(task.id, payload={"amount": 5, **large})


def test_an_event_is_judged_again_by_whoever_replays_it(sim: Simulation, create: Create) -> None:
    """Code that takes an admin's events only does not go on with one of the owner's; the error names both."""
    task = create("lax", payload={})
    sim.advance(MINUTE)
    sim.app.send_event(task.id, "approved", sender=OWNER)
    sim.advance(MINUTE)
    handlers = sim.app.container.registry.registrations.handlers
    handlers["lax"] = replace(handlers["payout"], name="lax")
    execution = end(sim, task)
    assert (execution.status, execution.error and execution.error.type) == ("FAILED", "JournalMismatch")
    assert execution.error
    assert "owner" in execution.error.message
    assert "admin" in execution.error.message


def test_a_user_starts_no_servers_handler_that_an_edit_has_replaced(
    sim: Simulation, shop: Shop, create: Create
) -> None:
    """Neither by a retry, from any step, nor by ending a pause: what would run counts, not what the task says."""
    task = create("payout", payload={"amount": 10}, retry={"maxRetries": 0})
    sim.advance(MINUTE)
    (run,) = sim.app.get(task.id).runs
    sim.app.pause(task.id)
    sim.app.update(task.id, handler="plain")
    with pytest.raises(Forbidden):
        as_user(sim.app).resume(task.id)
    sim.app.resume(task.id)
    sim.app.cancel(task.id)
    sim.app.update(task.id, schedule=Schedule.once(sim.now + 9 * DAY))
    for from_step in (None, 1):
        with pytest.raises(Forbidden):
            as_user(sim.app).retry(task.id, run.execution_id, from_step=from_step)
    as_user(sim.app).trigger(task.id)
    sim.advance(MINUTE)
    assert shop.did == ["plain 10"]


def test_a_list_has_open_executions_by_the_handler_that_they_run(sim: Simulation, create: Create) -> None:
    """Not by the one that their task has now, nor are others in it; page by page, and when they have ended, too."""
    for number in range(3):
        task = create("trial" if number else "premium", schedule=Schedule.once(sim.now + MINUTE))
        sim.advance(2 * MINUTE)
        sim.app.update(task.id, handler="premium" if number else "trial")

    def find(handler: str, limit: int) -> list[str]:
        query, found = ExecutionQuery(handler=handler), list[str]()
        page = sim.app.find_executions(query, limit=limit)
        while page.next_page_token is not None:
            found += [each.task_id for each in page.items]
            page = sim.app.find_executions(query, limit=limit, page_token=page.next_page_token)
        return [*found, *(each.task_id for each in page.items)]

    for limit in (1, 2, 50):
        assert (len(find("trial", limit)), len(find("premium", limit))) == (2, 1), limit
    sim.advance(2 * DAY)
    assert [len(find(name, 50)) for name in ("trial", "premium")] == [2, 1]
