"""The promises of woken agents, each over each framework."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import wraps
from importlib import import_module
from threading import Thread
from typing import Any

import pytest
from tests.agents.frameworks.scripted import (
    FEW_TOOLS,
    FRAMEWORKS,
    PROMISES,
    TOKENS,
    Framework,
    Turn,
    World,
    promise,
)

from cloudsched import AsyncContext, EventSender
from cloudsched.agents import AgentCall, SchedulingTools, current_call
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.testing import Simulation

DAY = timedelta(days=1)


def write_table() -> str:
    """Return the table of docs/guides/agent-schedules.md."""
    rows = [["promise", *(each.title for each in FRAMEWORKS)], ["---"] * 5]
    for words, lacks in PROMISES.items():
        rows.append([words, *(f"no: {lacks[each.name]}" if each.name in lacks else "yes" for each in FRAMEWORKS)])
    return "\n".join(f"| {' | '.join(each)} |" for each in rows)


def look_twice(_prompt: str, answers: list[Any]) -> Turn:
    if not answers:
        return [("weather", {"city": "Rome"}), ("weather", {"city": "Bern"})]
    return f"{len(answers)} suns" if all("sun" in str(each) for each in answers) else "no sun"


@promise("Each turn and each call of a tool is made once, also side by side")
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


@promise("A model that never ends is stopped after `max_turns`, or by the task's limit")
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


@promise("An empty answer, or `[SILENT]` in any spelling, sends nothing")
def test_an_agent_with_nothing_to_say_tells_nobody(framework: Framework) -> None:
    """Nor does it on the days before the one that has news."""
    odd = ["**[SILENT]**", "[silent].", "Nothing new.\n`\\[Silent\\]`\n", "_SILENT_"]
    news = iter(["", " ", "[SILENT]\n", *odd, "[SILENT] means no news.", "Silent"])
    world = World(framework, lambda *_: next(news))
    with Simulation(world.app) as sim:
        world.create()
        sim.advance(9 * DAY)
        assert [each.body for each in sim.inbox("ada")] == ["[SILENT] means no news.", "Silent"]


@promise("It keeps the schedules of the person whom it was woken for")
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


@promise("A call that is wrong changes nothing, and the model is told why")
def test_a_model_is_told_what_is_wrong_with_its_call(framework: Framework) -> None:
    """It gets the tool's own words, and nothing is done."""

    def decide(_prompt: str, answers: list[Any]) -> Turn:
        return [("skip_next", {"id": "none", "colour": "red"})] if not answers else str(answers[-1])

    world = World(framework, decide)
    with Simulation(world.app) as sim:
        task = world.create()
        sim.advance(DAY)
        assert "has no argument 'colour'" in str(sim.executions(task)[0].content)


@promise("In a chat, tools act for whom your app names")
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


@promise("A process that dies in a turn, in a tool or as it writes the session repeats that alone")
@pytest.mark.parametrize("at", range(22))
def test_what_is_finished_is_not_repeated_after_a_crash(
    framework: Framework, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies before or after a step, or after one message of the session: only that step is repeated."""
    made, points = list[str](), iter(range(1000))
    step: Any = AsyncContext.step

    def pass_point() -> None:
        if next(points) == at:
            raise Killed

    def die_in(ctx: AsyncContext, name: str, function: Callable[..., Any], *given: Any, **named: Any) -> Any:  # noqa: ANN401
        @wraps(function)
        async def die(*given: Any, **named: Any) -> Any:  # noqa: ANN401
            pass_point()
            found = await function(*given, **named)
            pass_point()
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
    memory = Memory(framework, pass_point)
    world = World(framework, decide, count, **memory.options)
    with Simulation(world.app) as sim:
        task = world.create(schedule="today at 9:00")
        for _ in range(2):
            with suppress(Killed):
                sim.advance(timedelta(hours=12))
        (run,) = sim.executions(task)
        assert (run.status, run.content) == ("SUCCEEDED", "done"), run.error
        expected = ["turn 0", "tool 0", "turn 1", "tool 1", "turn 2"]
        if at % 2 and 2 <= at < 12:  # it was finished, and not recorded
            expected.insert(at // 2 - 1, expected[at // 2 - 1])
        assert made == expected
        assert (run.tokens, run.queries) == (3 * TOKENS, 3)
        assert memory.said() == 6
        (told,) = sim.inbox("ada")
        assert told.body.rpartition("\n")[2] == "done"


@promise("A task that was being created in a crash is there once")
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
    """The conversations of a framework, as its users keep them. `pass_point` is called after each message."""

    def __init__(self, framework: Framework, pass_point: Callable[[], None] = lambda: None) -> None:
        self._pass_point = pass_point
        self.options: dict[str, Any] = {}
        self.said: Callable[[], int]
        self.options, self.said = getattr(self, f"_open_{framework.name}")()

    def _open_adk(self) -> tuple[dict[str, Any], Callable[[], int]]:
        module: Any = import_module("google.adk.sessions")

        class Sessions(module.InMemorySessionService):  # type: ignore[misc]
            async def append_event(_, *given: Any) -> Any:  # noqa: ANN401, N805
                found = await super().append_event(*given)
                self._pass_point()
                return found

        sessions = Sessions()

        def count() -> int:
            session = asyncio.run(sessions.get_session(app_name="cloudsched", user_id="ada", session_id="ada"))
            return len(session.events)

        return {"session_service": sessions}, count

    async def _add(self, kept: list[Any], added: list[Any]) -> None:
        for each in added:
            kept.append(each)
            self._pass_point()

    def _open_openai_agents(self) -> tuple[dict[str, Any], Callable[[], int]]:
        items: list[Any] = []

        class Session:
            session_id = "ada"

            async def get_items(_, limit: int | None = None) -> list[Any]:  # noqa: N805
                return items[-limit:] if limit else [*items]

            async def add_items(_, added: list[Any]) -> None:  # noqa: N805
                await self._add(items, added)

        return {"make_session": lambda _: Session()}, lambda: len(items)

    def _open_pydantic_ai(self) -> tuple[dict[str, Any], Callable[[], int]]:
        kept: list[Any] = []

        class Conversations:
            async def load(_, person: str) -> list[Any]:  # noqa: N805
                assert person == "ada"
                return kept

            async def add(_, person: str, messages: list[Any]) -> None:  # noqa: N805
                assert person == "ada"
                await self._add(kept, messages)

        return {"conversations": Conversations()}, lambda: len(kept)

    def _open_langgraph(self) -> tuple[dict[str, Any], Callable[[], int]]:
        saver = import_module("langgraph.checkpoint.memory").InMemorySaver()
        config = {"configurable": {"thread_id": "ada", "checkpoint_ns": ""}}
        return {"checkpointer": saver}, lambda: len(saver.get(config)["channel_values"]["messages"])


@promise("A run knows what was said before, and adds to it")
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


@promise("The person is asked once for all calls of a turn, in words. A no, and silence, leave all as it was")
@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize(
    ("answer", "is_cancelled"), [({"approved": True}, True), ({"approved": False}, False), (None, False)]
)
def test_a_person_is_asked_first(
    framework: Framework, answer: dict[str, bool] | None, *, is_cancelled: bool, replay: bool
) -> None:
    """The question reaches their inbox, and names the tasks and the time."""
    others = list[str]()

    def decide(_prompt: str, answers: list[Any]) -> Turn:
        return "Asked." if answers else [("cancel_task", {"id": each}) for each in others]

    world = World(framework, decide, confirm={"cancel_task"})
    with Simulation(world.app, replay=replay) as sim:
        others += [world.create(schedule="in 300 days", title=each) for each in ("Tea", "Cup")]
        task = world.create(schedule="today at 9:00", title="Tidy")
        sim.advance(DAY)
        (asked,) = [each for each in sim.inbox("ada") if each.event]
        assert asked.body == (
            "May “Tidy” do this: cancel_task “Tea”; cancel_task “Cup”? "
            "Without an answer until Monday 04 January 2027, 09:00, it does not."
        )
        world.app.update(others[0], title="Coffee")
        assert [world.app.get(each).status for each in others] == ["ACTIVE"] * 2
        if answer is not None:
            sender = EventSender(role="person", subject="user:ada")
            world.app.send_event(task, str(asked.event), answer, execution_id=asked.execution_id, sender=sender)
        sim.advance(5 * DAY)
        (run,) = sim.executions(task)
        assert (run.status, run.content) == ("SUCCEEDED", "Asked."), run.error
        assert [world.app.get(each).status == "CANCELLED" for each in others] == [is_cancelled] * 2
        assert len(world.script.prompts) == 2


@promise("Calls that take days, side by side, each get their own answer, in any order, and early", FEW_TOOLS)
@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], None])
def test_long_running_tools_wait_for_whoever_answers(
    framework: Framework, order: list[int] | None, *, replay: bool
) -> None:
    """While nothing runs. A call has the same key each time, and no other's, though it asks for the same."""
    calls: dict[str, AgentCall] = {}

    def answer(event: str) -> None:
        call = calls[event]
        told = {"state": f"{[*calls].index(event)} came"}
        world.app.send_event(call.task_id, event, told, execution_id=call.execution_id)

    def order_item(item: str) -> dict[str, str]:
        """Order something, which takes days."""
        call = current_call()
        assert call is not None
        assert calls.setdefault(call.event, call) == call
        if order is None:
            thread = Thread(target=answer, args=[call.event])
            thread.start()
            thread.join()
        return {"state": f"ordered {item}"}

    def decide(_prompt: str, answers: list[Any]) -> Turn:
        if not answers:
            return [("order_item", {"item": each}) for each in ("tea", "cup", "cup")]
        return f"{answers[-3:]}" if "came" in str(answers) else "It is ordered."

    world = World(framework, decide, tools=[framework.make_lasting(order_item)])
    with Simulation(world.app, replay=replay) as sim:
        task = world.create(schedule="today at 9:00")
        sim.advance(DAY)
        assert len({each.key for each in calls.values()}) == 3
        for number in order or []:
            assert [each.status for each in sim.executions(task)] == ["SUSPENDED"]
            answer([*calls][number])
            sim.advance(DAY / 4)
        (run,) = sim.executions(task)
        assert run.status == "SUCCEEDED", run.error
        assert re.findall(r"(\d) came", str(run.content)) == ["0", "1", "2"]


@promise("Two people at once: each is asked and answered alone")
def test_two_people_at_once(framework: Framework) -> None:
    """Their runs wait side by side, and what one says changes nothing of the other's."""
    owned: dict[str, str] = {}

    def decide(prompt: str, answers: list[Any]) -> Turn:
        owner = "ada" if "for ada" in prompt else "bob"
        return f"{owner} {answers[-1]}" if answers else [("cancel_task", {"id": owned[owner]})]

    world = World(framework, decide, confirm={"cancel_task"})
    with Simulation(world.app) as sim:
        tasks = {}
        for owner in ("ada", "bob"):
            owned[owner] = world.create(schedule="in 300 days", owner=owner)
            tasks[owner] = world.create(f"for {owner}", schedule="today at 9:00", owner=owner)
        sim.advance(DAY / 2)
        for owner in ("bob", "ada"):
            (asked,) = [each for each in sim.inbox(owner) if each.event]
            sender = EventSender(role="person", subject=f"user:{owner}")
            given = {"approved": owner == "bob"}
            world.app.send_event(tasks[owner], str(asked.event), given, execution_id=asked.execution_id, sender=sender)
        sim.advance(DAY / 2)
        assert [world.app.get(each).status for each in owned.values()] == ["ACTIVE", "CANCELLED"]
        assert [str(sim.executions(each)[0].content)[:3] for each in tasks.values()] == ["ada", "bob"]


@promise("A model that is down is asked again, as `retry` says and once you retry the run")
def test_a_model_that_is_down_is_asked_again(framework: Framework) -> None:
    """Its failure is not its answer for good, in its first turn or a later one."""
    for turn in range(2):
        outages = [2]

        def decide(_prompt: str, answers: list[Any], turn: int = turn, outages: list[int] = outages) -> Turn:
            if len(answers) == turn and outages[0]:
                outages[0] -= 1
                raise ConnectionError("the model is down")
            return "done" if answers else [("weather", {"city": "Rome"})]

        world = World(framework, decide)
        with Simulation(world.app) as sim:
            task = world.create(schedule="today at 9:00", retry=1)
            sim.advance(DAY)
            assert [each.status for each in sim.executions(task)] == ["FAILED"]
            world.app.retry(task)
            sim.advance(DAY)
            (run,) = sim.executions(task)
            assert (run.status, run.content, world.looked) == ("SUCCEEDED", "done", ["Rome"]), run.error


@promise("A model that calls a tool that does not exist is told so")
def test_an_unknown_tool_is_told_to_the_model(framework: Framework) -> None:
    """It goes on from there."""
    world = World(framework, lambda *_: "done" if len(world.script.prompts) > 1 else [("nothing", {"x": 1})])
    with Simulation(world.app) as sim:
        task = world.create(schedule="today at 9:00")
        sim.advance(DAY)
        (run,) = sim.executions(task)
        assert (run.status, run.content, len(world.script.prompts)) == ("SUCCEEDED", "done", 2), run.error


@promise("It cannot agree to its own calls")
def test_an_agent_cannot_agree_to_its_own_calls(framework: Framework) -> None:
    """Nor can another run of it, which has the person's rights: what answers for the person needs their word."""
    waiting: dict[str, str] = {}

    def decide(prompt: str, answers: list[Any]) -> Turn:
        if answers:
            return "Done."
        if "Agree" in prompt:
            return [("answer", {**waiting, "payload": {"approved": True}})]
        return [("cancel_task", {"id": waiting["id"]})]

    world = World(framework, decide, confirm={"cancel_task"})
    with Simulation(world.app) as sim:
        waiting["id"] = world.create("Cancel", schedule="today at 9:00")
        sim.advance(timedelta(hours=10))
        (asked,) = [each for each in sim.inbox("ada") if each.event]
        waiting["event"] = str(asked.event)
        world.create("Agree", schedule="today at 12:00")
        sim.advance(timedelta(hours=3))
        assert [each.status for each in sim.executions(waiting["id"])] == ["SUSPENDED"]
        assert len([each for each in sim.inbox("ada") if each.event]) == 2
