"""An app with tools of every kind, and a model that answers as a test says."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from cloudsched import App, Context, Execution, Settings, Task
from cloudsched.config.settings import AssistantSettings
from cloudsched.engine.ports.model import Model, ModelUsage, record_usage
from cloudsched.testing import Simulation

ON = AssistantSettings(is_on=True)
SAID = [{"role": "user", "content": "Tell me each Monday how the bikes sell"}]


def answer(content: str = "All is well.", **more: Any) -> dict[str, Any]:
    return {"decision": "answer", "content": content, **more}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"decision": "call", "tool": tool, "arguments": arguments}


class ScriptedModel:
    """Gives answers in order, the last one again and again; raises those that are exceptions."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.told: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.schemas: list[dict[str, Any]] = []

    def complete(self, instructions: str, data: Any, schema: dict[str, Any]) -> Any:  # noqa: ANN401 - as the port
        self.told.append(instructions)
        self.asked.append(copy.deepcopy(data))
        self.schemas.append(schema)
        record_usage(ModelUsage(100, 25))
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(said, Exception):
            raise said
        return said(data) if callable(said) else said


class Query(BaseModel):
    text: str
    most: int = 3


class Tools:
    """Handlers that are open to the assistant, and others that lack one thing each; `made` are the calls of all."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str, Any]] = []
        self.app = App(Settings())
        opened: dict[str, Any] = {"tool": True, "access": "users", "draft": "Does it"}
        for name, missing in (("only-tool", ("access", "draft")), ("no-draft", ("draft",)), ("servers", ("access",))):
            options = {key: value for key, value in opened.items() if key not in missing}
            self.app.handler(name, **options)(self._note(name))
        self.app.handler("no-tool", access="users", draft="Does it")(self._note("no-tool"))
        self.app.handler("unnamed", **opened)(self._note("unnamed"))
        self.app.handler("fails", retry=False, tell_errors=True, **opened)(self._fail)
        self.app.handler("search", **{**opened, "draft": "Searches"})(self._search)

    def _note(self, name: str) -> Callable[..., str]:
        def run(ctx: Context, payload: dict[str, Any]) -> str:
            self.made.append((name, ctx.task.owner, payload))
            return f"{name} has run"

        return run

    def _fail(self, ctx: Context) -> None:
        self.made.append(("fails", ctx.task.owner, {}))
        raise ConnectionError("the shop is closed")

    def _search(self, ctx: Context, payload: Query) -> dict[str, Any]:
        self.made.append(("search", ctx.task.owner, payload.text))
        return {"found": f"{payload.text}: 7 sold"}


def simulate(tools: Tools, model: Model | None, **settings: Any) -> Simulation:
    return Simulation(tools.app, **{"language_model": model, "assistant": ON, **settings})


def create(sim: Simulation, *names: str, **fields: Any) -> Task:
    """Create a task of ada's that is due now."""
    source = {"chatId": "c1", "messages": SAID, **fields.pop("source", {})}
    defaults: dict[str, Any] = {"owner": "ada", "title": "Bikes", "purpose": "Say how the bikes sell"}
    task = {**defaults, "handler": "assistant", "payload": {"tools": list(names)}, "source": source, **fields}
    return sim.app.create(**task, schedule=sim.now)


def run(sim: Simulation, *names: str, **fields: Any) -> Execution:
    """Return the only execution of such a task, when nothing is left to do."""
    task = create(sim, *names, **fields)
    sim.run_until_idle()
    (execution,) = sim.executions(task.id)
    return execution
