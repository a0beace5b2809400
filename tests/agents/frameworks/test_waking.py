"""Woken agents of each framework: what was paid for is not paid for again, and what was promised is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import wraps
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.agents.frameworks.scripted import FRAMEWORKS, TOKENS, Framework, Turn, World

from cloudsched import AsyncContext
from cloudsched.agents import SchedulingTools, current_call
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.testing import START, Simulation

DAY = timedelta(days=1)
pytestmark = pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda each: each.name)


def look_twice(_prompt: str, answers: list[Any]) -> Turn:
    if not answers:
        return [("weather", {"city": "Rome"}), ("weather", {"city": "Bern"})]
    return f"{len(answers)} suns" if all("sun" in str(each) for each in answers) else "no sun"


@pytest.mark.parametrize("replay", [False, True])
def test_turns_and_tools_are_made_once(framework: Framework, *, replay: bool) -> None:
    """Also tools that a model calls side by side. Tokens are counted once, and the person gets the answer."""
    world = World(framework, look_twice)
    with Simulation(world.app, replay=replay) as sim:
        task = world.create()
        sim.advance(DAY)
        (run,) = sim.executions(task)
        assert (run.status, run.content, run.tokens, run.queries) == ("SUCCEEDED", "2 suns", 2 * TOKENS, 2), run.error
        assert sorted(world.looked) == ["Bern", "Rome"]
        assert len(world.script.prompts) == 2
        assert "How is the weather?" in world.script.prompts[0]
        assert [each.body for each in sim.inbox("ada")] == ["2 suns"]


def test_a_model_that_never_ends_is_asked_ten_times(framework: Framework) -> None:
    """Or as often as the app allows; or until the task's limit of the month is reached, and then goes on there."""
    allowed: dict[int, dict[str, Any]] = {10: {}, 3: {"max_turns": 3}}
    for most, options in allowed.items():
        world = World(framework, lambda _, answers: [("weather", {"city": f"Rome {len(answers)}"})], **options)
        with Simulation(world.app) as sim:
            task = world.create(retry=2)
            sim.advance(DAY)
            (run,) = sim.executions(task)
            assert run.error is not None
            assert (run.status, run.queries, len(world.script.prompts)) == ("FAILED", most, most), run.error
            assert f"{most} times" in run.error.message
    world = World(framework, lambda _, answers: [("weather", {"city": f"Rome {len(answers)}"})])
    with Simulation(world.app) as sim:
        task = world.create(max_tokens_per_month=2 * TOKENS)
        sim.advance(DAY)
        assert len(world.script.prompts) == 2
        world.app.update(task, max_tokens_per_month=4 * TOKENS)
        sim.advance(timedelta(hours=1))
        assert len(world.script.prompts) == 4
        assert world.app.get(task).status == "PAUSED"


def test_an_agent_with_nothing_to_say_tells_nobody(framework: Framework) -> None:
    """Nor does it on the days before the one that has news."""
    odd = ["**[SILENT]**", "[silent].", "Nothing new.\n`\\[Silent\\]`\n", "_SILENT_"]
    news = iter([" ", "[SILENT]\n", *odd, "[SILENT] means no news.", "Silent"])
    world = World(framework, lambda *_: next(news))
    with Simulation(world.app) as sim:
        world.create()
        sim.advance(8 * DAY)
        assert [each.body for each in sim.inbox("ada")] == ["[SILENT] means no news.", "Silent"]


@pytest.mark.parametrize("replay", [False, True])
def test_it_keeps_the_persons_schedules(framework: Framework, *, replay: bool) -> None:
    """It creates a task for the person whom it was woken for, once, and the task runs."""

    def decide(prompt: str, answers: list[Any]) -> Turn:
        if "Tea" in prompt:
            return "Drink tea"
        new = {"title": "Tea", "handler": "wake", "when": "tomorrow at 17:00", "payload": {"prompt": "Tea"}}
        return [("create_task", {**new, "channels": ["WEB"]})] if not answers else str(answers[-1]["told"])

    world = World(framework, decide)
    with Simulation(world.app, replay=replay) as sim:
        world.create(schedule="today at 9:00")
        sim.advance(3 * DAY)
        told, tea = sim.inbox("ada")
        assert "Saturday 2 January 2027 at 17:00 (Europe/Paris)" in told.body
        assert (tea.body, f"{tea.created_at:%d %H:%M}") == ("Drink tea", "02 16:00")
        assert {each.owner for each in world.app.tasks().items} == {"ada"}


def test_a_model_is_told_what_is_wrong_with_its_call(framework: Framework) -> None:
    """It gets the tool's own words, and nothing is done."""

    def decide(_prompt: str, answers: list[Any]) -> Turn:
        return [("skip_next", {"id": "none", "colour": "red"})] if not answers else str(answers[-1])

    world = World(framework, decide)
    with Simulation(world.app) as sim:
        task = world.create()
        sim.advance(DAY)
        assert "has no argument 'colour'" in str(sim.executions(task)[0].content)


def test_in_a_conversation_tools_act_for_whom_the_app_names(framework: Framework) -> None:
    """Whatever the model says, and with the person's rights."""

    def decide(_prompt: str, answers: list[Any]) -> Turn:
        new = {"title": "Tea", "handler": "wake", "when": "tomorrow at 17:00", "payload": {"prompt": "Tea"}}
        return [("create_task", new)] if not answers else str(answers[-1]["told"])

    world = World(framework, decide)
    with Simulation(world.app):
        for person in ("ada", "bob"):
            said = asyncio.run(framework.chat(world.agent, person, "Remind me of tea"))
            assert said.startswith("Created. It runs next on Saturday 2 January 2027 at 17:00")
        assert sorted(each.owner for each in world.app.tasks().items) == ["ada", "bob"]
    assert current_call() is None


class Killed(ControlFlow):
    """The process has crashed. No code of a framework catches it."""


@pytest.mark.parametrize("at", range(10))
def test_what_is_finished_is_not_repeated_after_a_crash(
    framework: Framework, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies before or after a turn of the model, or a tool: only what was not recorded is repeated."""
    made, points = list[str](), iter(range(1000))
    step: Any = AsyncContext.step

    def die_in(ctx: AsyncContext, name: str, function: Callable[..., Any], *given: Any, **named: Any) -> Any:  # noqa: ANN401
        @wraps(function)
        async def die(*given: Any, **named: Any) -> Any:  # noqa: ANN401
            if next(points) == at:
                raise Killed
            found = await function(*given, **named)
            if next(points) == at:
                raise Killed
            return found

        return step(ctx, name, die, *given, **named)

    def decide(_prompt: str, answers: list[Any]) -> Turn:
        made.append(f"turn {len(answers)}")
        return "done" if len(answers) == 2 else [("count", {"number": len(answers)})]

    def count(number: int) -> dict[str, int]:
        """Count."""
        made.append(f"tool {number}")
        return {"number": number}

    monkeypatch.setattr(AsyncContext, "step", die_in)
    world = World(framework, decide, count)
    with Simulation(world.app) as sim:
        task = world.create(schedule="today at 9:00")
        for _ in range(2):
            with suppress(Killed):
                sim.advance(timedelta(hours=12))
        (run,) = sim.executions(task)
        assert (run.status, run.content) == ("SUCCEEDED", "done"), run.error
        expected = ["turn 0", "tool 0", "turn 1", "tool 1", "turn 2"]
        if at % 2:  # it was finished, and not recorded
            expected.insert(at // 2, expected[at // 2])
        assert made == expected
        assert (run.tokens, run.queries) == (3 * TOKENS, 3)
        (told,) = sim.inbox("ada")
        assert told.body.endswith("late.\n\ndone")


def test_an_agent_creates_once_what_it_was_creating_in_a_crash(
    framework: Framework, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task was stored, and the process died before the call was recorded: the repeated call finds it."""
    left = [True]
    call = SchedulingTools.call

    async def die_after(self: SchedulingTools, *given: Any, **named: Any) -> dict[str, Any]:
        answer = await call(self, *given, **named)
        if left:
            left.clear()
            raise Killed
        return answer

    def decide(_prompt: str, answers: list[Any]) -> Turn:
        new = {"title": "Tea", "handler": "wake", "when": "in 300 days", "payload": {"prompt": "Tea"}}
        return [("create_task", new)] if not answers else str(answers[-1]["id"])

    monkeypatch.setattr(SchedulingTools, "call", die_after)
    world = World(framework, decide)
    with Simulation(world.app) as sim:
        task = world.create(schedule="today at 9:00")
        for _ in range(2):
            with suppress(Killed):
                sim.advance(timedelta(hours=12))
        (run,) = sim.executions(task)
        assert not left
        assert sorted(each.id for each in world.app.tasks().items) == sorted([task, str(run.content)])


class Memory:
    """The conversations of a framework, as its users keep them."""

    def __init__(self, framework: Framework) -> None:
        self.options: dict[str, Any] = {}
        self.said: Callable[[], int]
        made = getattr(self, f"_open_{framework.name}")()
        self.options, self.said = made

    def _open_adk(self) -> tuple[dict[str, Any], Callable[[], int]]:
        sessions = import_module("google.adk.sessions").InMemorySessionService()

        def count() -> int:
            session = asyncio.run(sessions.get_session(app_name="cloudsched", user_id="ada", session_id="ada"))
            return len(session.events)

        return {"session_service": sessions}, count

    def _open_openai_agents(self) -> tuple[dict[str, Any], Callable[[], int]]:
        items: list[Any] = []

        class Session:
            session_id = "ada"

            async def get_items(self, limit: int | None = None) -> list[Any]:
                return items[-limit:] if limit else items

            async def add_items(self, added: list[Any]) -> None:
                items.extend(added)

        return {"make_session": lambda _: Session()}, lambda: len(items)

    def _open_pydantic_ai(self) -> tuple[dict[str, Any], Callable[[], int]]:
        kept: list[Any] = []

        class Conversations:
            async def load(self, person: str) -> list[Any]:
                assert person == "ada"
                return kept

            async def add(self, person: str, messages: list[Any]) -> None:
                assert person == "ada"
                kept.extend(messages)

        return {"conversations": Conversations()}, lambda: len(kept)

    def _open_langgraph(self) -> tuple[dict[str, Any], Callable[[], int]]:
        saver = import_module("langgraph.checkpoint.memory").InMemorySaver()
        config = {"configurable": {"thread_id": "ada", "checkpoint_ns": ""}}
        return {"checkpointer": saver}, lambda: len(saver.get(config)["channel_values"]["messages"])


@pytest.mark.parametrize("replay", [False, True])
def test_a_run_knows_what_was_said_before(framework: Framework, *, replay: bool) -> None:
    """The conversation of the person grows by what each run has said, once."""
    memory = Memory(framework)
    world = World(framework, look_twice, **memory.options)
    sizes: list[int] = []
    with Simulation(world.app, replay=replay) as sim:
        task = world.create()
        for _ in range(3):
            sim.advance(DAY)
            sizes.append(memory.said())
        assert [each.status for each in sim.executions(task)] == ["SUCCEEDED"] * 3, sim.executions(task)[0].error
    assert sizes[0] >= 3
    assert sizes == [sizes[0], 2 * sizes[0], 3 * sizes[0]]
    assert len(world.script.prompts) == 6


def test_a_year_of_many_people(framework: Framework, request: pytest.FixtureRequest) -> None:
    """Through both changes of the clocks, each of their occurrences wakes the agent once, at their own time."""
    count = 100 if request.config.getoption("--all") else 3
    zones = ["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Santiago"]
    woken: dict[str, list[datetime]] = {}
    world = World(framework, lambda *_: "[SILENT]")
    with Simulation(world.app) as sim:
        for number in range(count):
            zone, day = zones[number % 5], ["Monday", "Saturday", "Sunday"][number % 3]
            owner = f"p{number}"
            world.create(
                schedule=f"every {day} at {number % 24:02}:30", owner=owner, timezone=zone, delivery_channels=[]
            )
        sim.advance(364 * DAY)
        for task in world.app.tasks(limit=200).items:
            woken[task.owner] = [
                each.started_at for each in sim.app.executions(task.id, limit=200).items if each.started_at
            ]
        end = sim.now
    for number in range(count):
        place, weekday = ZoneInfo(zones[number % 5]), [0, 5, 6][number % 3]
        days = (date(2026, 12, 31) + each * DAY for each in range(366))
        times = (datetime.combine(each, time(number % 24, 30), place) for each in days if each.weekday() == weekday)
        due = [each.astimezone(UTC) for each in times if START <= each <= end]
        begun = sorted(woken[f"p{number}"])
        assert len(begun) == len(due), (number, place)
        assert all(at <= started < at + timedelta(minutes=3) for at, started in zip(due, begun, strict=True))
