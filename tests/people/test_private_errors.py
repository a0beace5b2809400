"""No word of an exception reaches an owner: not by any channel, for no kind of failure, unless the handler says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.authorities import as_user

from cloudsched import App, Context, Fail, Retry, Settings, Task
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.engine.state.quotas import RUN_CREATIONS
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

MARK = "hunter2"
"""What stands in each exception, as a password would."""
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
CHANNELS = [each for each in DeliveryChannel if each not in {DeliveryChannel.WEB, DeliveryChannel.OPERATOR}]
URL = "https://example.com/ada"


class LoginFailed(Exception):
    """A kind of error whose very name is nobody's business."""


def end_with(outcome: object) -> Callable[..., object]:
    """Return a handler that raises an error, or returns anything else."""

    def handler() -> object:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return handler


BROKEN = LoginFailed(f"postgres://admin:{MARK}@db refused")
WRAPPED = RuntimeError("no plants")
WRAPPED.__cause__ = BROKEN
OUTCOMES = {
    "raise": BROKEN,
    "retry": Retry(f"not yet: {MARK}", timedelta(minutes=1)),
    "expires": Retry(MARK, 2 * DAY),
    "fail": Fail(f"password {MARK}"),
    "group": ExceptionGroup(MARK, [ValueError(MARK)]),
    "cause": WRAPPED,
    "runaway": ValueError(f"{RUN_CREATIONS} {MARK}"),
    "slow": TimeoutError(MARK),
}


def make_app(*, tells: bool) -> App:
    app = App(Settings())
    told: dict[str, Any] = {"access": "users", "tell_errors": tells}
    for kind, outcome in OUTCOMES.items():
        app.handler(kind, retry=3 if isinstance(outcome, Retry) else False, **told)(end_with(outcome))

    @app.handler("step", retry=False, **told)
    def step(ctx: Context) -> None:
        ctx.step("log in", end_with(BROKEN), retry=False)

    @app.handler("call", retry=False, **told)
    def call(ctx: Context) -> object:
        return ctx.call("raise").result()

    @app.handler("changed", **told)
    def changed(payload: dict[str, str]) -> None:
        """Take texts, until a deployment wants numbers."""

    return app


@pytest.fixture(params=[False, True], ids=["private", "told"])
def sim(request: pytest.FixtureRequest) -> Iterator[Simulation]:
    with Simulation(make_app(tells=request.param)) as opened:
        opened.add_person("ada")
        yield opened


def make(sim: Simulation, **more: Any) -> Task:
    """Let Ada create a task that delivers by all channels, with a callback and a ping of her own."""
    fields = {
        "owner": "ada",
        "title": "Plants",
        "schedule": {"at": (sim.now + HOUR).isoformat()},
        "deliveryChannels": [str(each) for each in CHANNELS],
        "onCompletion": {"webhook": URL},
        "ping": {"url": "https://example.com/ping"},
        "tellFailures": "each",
        **more,
    }
    return as_user(sim.app).put(sim.app.read_draft(fields))[0]


def collect(sim: Simulation, task: Task) -> str:
    """Return all that has reached Ada."""
    sent = [each for name in (*CHANNELS, "COMPLETION", "PING") for each in sim.sent(name)]
    feed = PeopleWiring.of(sim.app.container).feeds.render_task(sim.app.get(task.id))
    return "\n".join([*(f"{each.message}" for each in sent), *map(repr, sim.inbox("ada")), feed])


def is_told(sim: Simulation) -> bool:
    return sim.app.container.handlers.tells_errors("raise")


@pytest.mark.parametrize("kind", [*OUTCOMES, "step", "call"])
def test_no_word_of_an_exception_reaches_an_owner(sim: Simulation, kind: str) -> None:
    """Each message has the title, when it was due, and what happens next. Where the handler says so, the text, too."""
    task = make(sim, handler=kind)
    sim.advance(8 * DAY)
    reached = collect(sim, task)
    assert sim.sent("COMPLETION")
    [message] = sim.inbox("ada")
    assert "Plants" in message.title + message.body
    if kind != "runaway":
        assert "due on" in message.body
        assert "does not run again" in message.body
        assert len({each.message.body for name in CHANNELS for each in sim.sent(name)}) == 1
    if is_told(sim):
        assert MARK in reached or kind == "cause"
    else:
        assert MARK not in reached
        assert "LoginFailed" not in reached
    assert MARK in repr([each.to_wire() for each in sim.executions(task.id)])


def test_a_deployment_that_changes_a_payload_blames_no_owner(sim: Simulation) -> None:
    """Their payload was right when they wrote it."""
    task = make(sim, handler="changed", payload={"weeks": MARK})

    registrations = sim.app.container.registry.registrations
    other = App(Settings())

    @other.handler("changed", access="users", tell_errors=is_told(sim))
    def changed(payload: dict[str, int]) -> None:
        """Take numbers."""

    registrations.handlers["changed"] = other.container.registry.registrations.handlers["changed"]
    sim.advance(2 * DAY)
    assert ("InvalidPayload" in collect(sim, task)) == is_told(sim)


@pytest.mark.parametrize("way", ["fail", "continue"])
def test_a_child_tells_no_more_than_its_handler(sim: Simulation, way: str) -> None:
    """Neither in the failure of the whole, nor in the results that go on without it."""
    task = make(sim, children=[{"handler": "raise"}], onChildFailure=way)
    sim.advance(2 * DAY)
    assert (MARK in collect(sim, task)) <= is_told(sim)
    assert sim.sent("EMAIL")


def test_operators_and_the_system_are_told_all(sim: Simulation) -> None:
    """They have to mend it."""
    sim.app.create(owner="ada", handler="raise", schedule=sim.now + HOUR, delivery_channels=["OPERATOR", "EMAIL"])
    sim.app.create(owner="system", handler="raise", schedule=sim.now + HOUR, delivery_channels=["WEB"])
    sim.app.create(owner="ada", handler="raise", schedule=sim.now + HOUR, on_completion={"webhook": URL})
    sim.advance(DAY)
    [message] = sim.sent("OPERATOR")
    assert f"LoginFailed: postgres://admin:{MARK}" in message.body
    assert all((MARK in each.body) == is_told(sim) for each in sim.sent("EMAIL"))
    assert MARK in sim.inbox("system")[0].body
    assert MARK in repr(sim.sent("COMPLETION"))  # an address of the app's own code
