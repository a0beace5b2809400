"""An app with tools, and scripts that use them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from tests.instants import MINUTE

from cloudsched import App, Context, Execution, Schedule, Task
from cloudsched.config.settings import Sandbox
from cloudsched.engine.ports.interpreter import Interpreter, Round, ScriptInput
from cloudsched.scripts.wiring import ScriptsWiring
from cloudsched.testing import START, Simulation

SOON = Schedule.once(START + MINUTE)
DAY = 86_400


class Query(BaseModel):
    """The arguments of the tool `lookup`."""

    id: int


class Found(BaseModel):
    """The result of the tool `lookup`."""

    name: str
    owner: str


class ToolApp:
    """An app with tools, and the record of their calls."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.did: list[str] = []

        @self.app.handler("lookup", tool=True)
        def lookup(ctx: Context, query: Query) -> Found:
            self.did.append(f"lookup {query.id}")
            return Found(name=f"customer {query.id}", owner=ctx.task.owner)

        @self.app.handler("slow", tool=True)
        def slow(ctx: Context, payload: dict[str, int]) -> int:
            ctx.sleep(timedelta(minutes=payload["minutes"]))
            self.did.append(f"slow {payload['minutes']}")
            return payload["minutes"]

        @self.app.handler("broken", tool=True, retry=False, tell_errors=True)
        def broken() -> None:
            raise ConnectionError("no line")

        @self.app.handler("secret")
        def secret() -> str:
            self.did.append("secret")
            return "the secret"


@contextmanager
def script_task(
    tools: ToolApp, source: str, *, replay: bool = False, **fields: Any
) -> Iterator[tuple[Simulation, Task]]:
    script = {"source": source, **({"tools": fields.pop("names")} if "names" in fields else {})}
    sandbox = fields.pop("sandbox", Sandbox())
    with Simulation(tools.app, replay=replay, sandbox=sandbox) as sim:
        fields = {"owner": "ada", "title": "Mine", "schedule": SOON, "script": script, **fields}
        yield sim, tools.app.create(**fields)


def run(tools: ToolApp, source: str, **more: Any) -> Execution:
    """Run a script to its end; return its record."""
    with script_task(tools, source, **more) as (sim, task):
        sim.run_until_idle(timedelta(days=366))
        (execution,) = sim.executions(task.id)
        return execution


def error_parts(execution: Execution) -> tuple[str, str]:
    assert execution.status == "FAILED"
    assert execution.error
    return execution.error.type, execution.error.message


class CompromisedInterpreter:
    """An interpreter that a script has taken over: it requests calls that the script may not make."""

    def __init__(self, *rounds: Round | Exception) -> None:
        self.rounds = list(rounds)
        self.answers: list[Any] = []

    def check(self, source: str) -> None:
        """Accept any script."""

    @contextmanager
    def run(self, script_input: ScriptInput) -> Iterator[CompromisedInterpreter]:
        self.rest = list(self.rounds)
        assert "secret" not in script_input.tools
        yield self

    def resume(self, responses: Any, now: Any) -> Round:  # noqa: ANN401, ARG002 - a fake
        self.answers.append(responses)
        reached = self.rest.pop(0)
        if isinstance(reached, Exception):
            raise reached
        return reached


@contextmanager
def task_with_interpreter(tools: ToolApp, interpreter: Interpreter, **fields: Any) -> Iterator[tuple[Simulation, Task]]:
    with Simulation(tools.app) as sim:
        ScriptsWiring.of(tools.app.container).replace(interpreter=interpreter)
        script = {"source": "return 1", "tools": ["lookup"]}
        yield sim, tools.app.create(owner="ada", title="T", schedule=SOON, script=script, **fields)
