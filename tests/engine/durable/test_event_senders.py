"""Whose events a durable handler takes."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from tests.engine.harness import DAY, MINUTE, SECOND, Create, only_run

from cloudsched import App, Context, EventSender, EventTimedOut
from cloudsched.domain.documents.authority import SenderRole
from cloudsched.domain.transitions.suspend import MAX_EVENTS
from cloudsched.errors import InvalidInput, NotAllowed, NotAwaited
from cloudsched.testing import Simulation

WORKER = EventSender(role=SenderRole.WORKER, subject="key:gpu")
OWNER = EventSender(role=SenderRole.OWNER, subject="user:ada")


@pytest.fixture
def app(app: App) -> App:
    """Return an app with one handler that takes the usual events, and one for each other set of senders."""

    def wait(ctx: Context, **options: Any) -> Any:  # noqa: ANN401 - any JSON
        try:
            return ctx.wait_for("approved", timeout=DAY, **options)
        except EventTimedOut:
            return "nobody"

    @app.handler("work")
    def work(ctx: Context) -> Any:  # noqa: ANN401 - the same
        return wait(ctx)

    @app.handler("machines")
    def wait_for_worker(ctx: Context) -> Any:  # noqa: ANN401 - the same
        return wait(ctx, by=["worker"])

    @app.handler("admins")
    def wait_for_admin(ctx: Context) -> Any:  # noqa: ANN401 - the same
        return wait(ctx, by=("admin",))

    @app.handler("wrong")
    def wait_with_options(ctx: Context, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - the same
        return wait(ctx, **payload)

    return app


@pytest.mark.parametrize(
    ("handler", "sender", "result"),
    [
        ("work", OWNER, "yes"),
        ("work", None, "yes"),
        ("work", WORKER, "nobody"),
        ("machines", WORKER, "yes"),
        ("machines", OWNER, "nobody"),
        ("admins", OWNER, "nobody"),
        ("admins", None, "yes"),
    ],
)
@pytest.mark.parametrize("is_early", [True, False])
def test_an_event_counts_if_its_sender_is_named(
    app: App,
    sim: Simulation,
    create: Create,
    handler: str,
    sender: EventSender | None,
    result: str,
    *,
    is_early: bool,
) -> None:
    """By default the owner's and the admin's; the app's own code is an admin. Whether it came early changes nothing.

    Anybody else's is refused if the handler waits already, and goes untaken if it came early.
    """
    task = create(handler=handler)
    if not is_early:
        sim.advance(MINUTE)
    with nullcontext() if is_early or result == "yes" else pytest.raises(NotAwaited):
        app.send_event(task.id, "approved", "yes", early=is_early, sender=sender)
    sim.advance(2 * DAY)
    assert only_run(sim, task).content == result


def test_an_event_that_does_not_count_wakes_nobody(app: App, sim: Simulation, create: Create) -> None:
    """A handler that waits for an admin sleeps on when the owner sends one: it is not replayed over and over."""
    task = create(handler="admins")
    app.send_event(task.id, "approved", "early", early=True, sender=OWNER)
    sim.advance(20 * SECOND)
    (run,) = app.get(task.id).runs
    app.send_event(task.id, "approved", "late", early=True, sender=OWNER)
    sim.advance(20 * SECOND)
    (later,) = app.get(task.id).runs
    assert later.due_at == run.due_at > sim.now
    assert later.suspension_count == run.suspension_count == 1


def test_events_that_do_not_count_shut_out_none_that_does(app: App, sim: Simulation, create: Create) -> None:
    """An owner who fills the task with events of the right name cannot prevent the admin's from being consumed."""
    task = create(handler="admins")
    sim.advance(MINUTE)
    for _ in range(MAX_EVENTS):
        with pytest.raises(NotAwaited):
            app.send_event(task.id, "approved", "forged", sender=OWNER)
    for number in range(MAX_EVENTS):
        app.send_event(task.id, "approved", number, early=True, sender=OWNER)
    with pytest.raises(NotAllowed, match="full of 20 events"):
        app.send_event(task.id, "approved", "forged", early=True, sender=OWNER)
    app.send_event(task.id, "comment", "not awaited", early=True)
    app.send_event(task.id, "approved", "yes")
    sim.run_until_idle()
    assert only_run(sim, task).content == "yes"


@pytest.mark.parametrize(
    ("role", "subject"),
    [
        (SenderRole.OWNER, "user:eve"),
        (SenderRole.OWNER, "ada"),
        (SenderRole.PERSON, "eve"),
        (SenderRole.PERSON, None),
    ],
)
def test_a_sender_is_the_owner_or_a_person_by_name(
    app: App, sim: Simulation, create: Create, role: SenderRole, subject: str | None
) -> None:
    """Nobody answers in the owner's place by a slip."""
    task = create(handler="work")
    sim.advance(MINUTE)
    with pytest.raises(InvalidInput, match="sender"):
        app.send_event(task.id, "approved", sender=EventSender(role=role, subject=subject))


@pytest.mark.parametrize("by", ["owner", [], ["stranger"], 7, None])
def test_unknown_senders_are_refused(sim: Simulation, create: Create, by: object) -> None:
    """A single string is a mistake, too: it would be read letter by letter."""
    task = create(handler="wrong", payload={"by": by}, retry=False)
    sim.run_until_idle()
    error = only_run(sim, task).error
    assert error is not None
    assert (error.type, error.message.split()[0]) == ("InvalidInput", "by:")
