"""What a quick handler cannot have is refused as early as it is known, with what to do about it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched import App, AsyncContext, Context, ExecutionStatus, Schedule, Settings, TaskDraft
from cloudsched.domain.documents.policy import Overlap
from cloudsched.engine.handlers.registry import Registry
from cloudsched.engine.ports.authority import OWN_CODE
from cloudsched.errors import InvalidInput, Misconfigured
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pull": "gpu"}, "quick=True and pull exclude each other"),
        ({"access": "users", "user_queues": ("gpu",)}, "quick=True and user_queues exclude each other"),
        ({"expected_duration": timedelta(minutes=5)}, "at most 0:00:20"),
        ({"quick": 1}, "give True or False"),
    ],
)
def test_options_that_a_quick_handler_cannot_have_are_refused_at_registration(
    options: dict[str, Any], words: str
) -> None:
    """Before the function is even looked at."""
    with pytest.raises(Misconfigured, match=words):
        Registry().register("work", **{"quick": True, **options})


def test_code_that_uses_something_durable_is_refused_at_registration() -> None:
    """Each durable operation of the context, also in a nested function; what is not durable, or another's, passes."""

    def call(ctx: Context) -> None:
        ctx.call("other")

    def step(context: Context) -> list[int]:
        return [context.step("one", int, each) for each in range(3)]

    def nested(ctx: Context) -> None:
        def inner() -> None:
            ctx.sleep(timedelta(days=1))

        inner()

    async def awaited(ctx: AsyncContext) -> None:
        await ctx.wait_for("go")

    for function, operation in ((call, "call"), (step, "step"), (nested, "sleep"), (awaited, "wait_for")):
        with pytest.raises(Misconfigured, match=rf"uses \w+\.{operation} in line \d+ of .*test_quick_handlers.py"):
            Registry().register("work", quick=True)(function)

    def harmless(ctx: Context, payload: dict[str, Any]) -> None:
        payload["step"].step("x")
        ctx.progress(str((ctx.now(), ctx.uuid(), ctx.random, ctx.time_left())))
        ctx.notify("a", "b")

    Registry().register("work", quick=True)(harmless)


@pytest.fixture
def sim() -> Iterator[Simulation]:
    app = App(Settings())

    @app.handler("blink", quick=True)
    def blink() -> None: ...

    @app.handler("slow")
    def slow() -> None: ...

    @app.handler("sneak", quick=True)
    def sneak(ctx: Context) -> None:
        getattr(ctx, "sle" + "ep")(timedelta(days=1))

    @app.handler("sneak later", quick=True)
    async def sneak_later(ctx: AsyncContext) -> None:
        await getattr(ctx, "st" + "ep")("one", lambda: None)

    @app.handler("caller")
    def caller(ctx: Context) -> Any:  # noqa: ANN401 - any JSON
        return ctx.call("blink", lock_key="door").result()

    with Simulation(app) as simulation:
        yield simulation


def make(**more: Any) -> TaskDraft:
    """Return the draft of an hourly task of the quick handler."""
    hourly = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:30:00")
    return TaskDraft.of(**{"id": "t", "owner": "ada", "title": "T", "handler": "blink", "schedule": hourly, **more})


CONFLICTS = [
    ("lock_key", "lockKey", "door", "Leave it out, or name a handler that is not quick."),
    ("pull", "pull", "gpu", "Leave it out, or name a handler that is not quick."),
    ("overlap", "overlap", "skip", "Give 'allow', or name a handler that is not quick."),
    ("overlap", "overlap", "buffer", "Give 'allow', or name a handler that is not quick."),
    ("expected_duration", "expectedDuration", timedelta(minutes=1), "Give a shorter one"),
]


@pytest.mark.parametrize(("name", "field", "value", "hint"), CONFLICTS)
def test_a_task_that_its_quick_handler_cannot_run_is_refused(
    sim: Simulation, name: str, field: str, value: object, hint: str
) -> None:
    """At its creation, at an edit of the field, and when a task that has it gets a quick handler; nothing is stored."""
    with pytest.raises(InvalidInput) as refused:
        sim.app.create(make(**{name: value}))
    assert (refused.value.field, hint in str(refused.value)) == (field, True)
    sim.app.create(make())
    with pytest.raises(InvalidInput, match=f"^{name}"):
        sim.app.create(make(**{name: value}))
    with pytest.raises(InvalidInput, match=f"^{name}"):
        sim.app.update("t", **{name: value})
    sim.app.create(make(id="s", handler="slow", **{"overlap": Overlap.ALLOW, name: value}))
    if name != "expected_duration":
        sim.app.update("s", expected_duration=timedelta(seconds=5))
    with pytest.raises(InvalidInput, match=f"^{name}"):
        sim.app.update("s", handler="blink")
    untouched = sim.app.create(make(id="default"))
    assert getattr(sim.app.get("t"), name) == getattr(untouched, name)


def test_a_quick_task_has_the_defaults_of_its_handler(sim: Simulation) -> None:
    """It may overlap, and takes ten seconds; null in a patch goes back to that."""
    task = sim.app.create(make())
    assert (task.overlap, task.expected_duration) == (Overlap.ALLOW, timedelta(seconds=10))
    sim.app.update("t", overlap="allow", expected_duration=timedelta(seconds=3))
    task = sim.app.container.scheduler.update("t", {"overlap": None, "expectedDuration": None}, OWN_CODE)
    assert (task.overlap, task.expected_duration) == (Overlap.ALLOW, timedelta(seconds=10))


def test_children_calls_and_follow_ups_are_checked_as_well(sim: Simulation) -> None:
    """A child by its place; a call fails its caller, with the field and what to do."""
    children = ({"handler": "blink", "lockKey": "door"},)
    with pytest.raises(InvalidInput) as refused:
        sim.app.create(TaskDraft.of(id="t", owner="ada", title="T", children=children))
    assert refused.value.field == "children.0.lockKey"
    sim.app.create(make(handler="caller", schedule=Schedule.once(START)))
    sim.advance(timedelta(minutes=1))
    (record,) = sim.executions("t")
    assert record.status is ExecutionStatus.FAILED
    assert record.error is not None
    assert "lock_key: is given, and its handler 'blink' is quick" in record.error.message


@pytest.mark.parametrize("handler", ["sneak", "sneak later"])
def test_durable_use_that_the_code_does_not_show_fails_the_attempt(sim: Simulation, handler: str) -> None:
    """For good, with words that say what to do; also where the run is claimed first."""
    sim.app.create(make(handler=handler))
    sim.advance(timedelta(hours=1))
    (record,) = sim.executions("t")
    assert (record.status, record.attempt_count) == (ExecutionStatus.FAILED, 1)
    assert record.error is not None
    assert "has to be recorded, and a quick handler has no journal" in record.error.message
