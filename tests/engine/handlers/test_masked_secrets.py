"""What pydantic hides when it says it as JSON would be stored hidden, and lost: it is refused instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field, Secret, SecretBytes, SecretStr
from tests.engine.harness import create, register_work_handler, run

from cloudsched import App, Context
from cloudsched.errors import InvalidInput
from cloudsched.testing import Simulation


class Login(BaseModel):
    user: str = "ada"
    pw: SecretStr = SecretStr("")


class Deep(BaseModel):
    logins: list[dict[str, Login]] = []
    key: SecretBytes | None = Field(default=None, alias="apiKey")
    pin: Secret[int] | None = None


@dataclass
class Plain:
    pw: SecretStr


SECRETS: dict[str, tuple[Any, str]] = {
    "model": (Login(pw=SecretStr("hunter2")), "payload.pw"),
    "dict": ({"pw": SecretStr("hunter2")}, "payload.pw"),
    "dataclass": (Plain(SecretStr("hunter2")), "payload.pw"),
    "deep": (Deep(logins=[{}, {"home": Login(pw=SecretStr("hunter2"))}]), "payload.logins.1.home.pw"),
    "bytes": (Deep(apiKey=SecretBytes(b"hunter2")), "payload.apiKey"),
    "number": (Deep(pin=Secret(4711)), "payload.pin"),
}


@pytest.fixture
def app(app: App) -> App:
    @app.handler("login")
    def login(payload: dict[str, Any]) -> Any:  # noqa: ANN401 - what it was given
        return payload

    return app


@pytest.mark.parametrize("case", SECRETS)
def test_a_secret_in_a_payload_is_refused(sim: Simulation, app: App, case: str) -> None:
    """This holds for a task, a call and an edit; the error names the field and what to do, but not the secret."""
    payload, field = SECRETS[case]
    errors = list[InvalidInput]()

    def ask(ctx: Context) -> None:
        with pytest.raises(InvalidInput) as refused:
            ctx.call("login", payload)
        errors.append(refused.value)

    register_work_handler(app, ask)
    with pytest.raises(InvalidInput) as refused:
        app.create(owner="ada", handler="login", payload=payload)
    errors.append(refused.value)
    task = create(app, handler="login")
    with pytest.raises(InvalidInput) as refused:
        app.update(task.id, payload=payload)
    errors.append(refused.value)
    create(app)
    sim.run_until_idle()
    assert [each.field for each in errors] == [field] * 3
    assert all("is a secret" in str(each) and "name of the secret" in str(each) for each in errors)
    assert not any("hunter2" in str(each) or "4711" in str(each) for each in errors)


@pytest.mark.parametrize("result", [SecretStr("hunter2"), Login(pw=SecretStr("hunter2")), [Plain(SecretStr("x"))]])
def test_a_secret_in_the_result_of_a_step_is_refused(app: App, result: object) -> None:
    """A replay would get its mask instead of the secret."""
    execution = run(app, lambda ctx: ctx.step("log in", lambda: result))
    assert execution.error
    assert execution.error.type == "StepFailed"
    assert "is a secret" in execution.error.message
    assert "hunter2" not in str(execution)


def test_a_secret_in_the_result_of_a_handler_is_refused(app: App) -> None:
    """The attempt fails, without a retry."""
    execution = run(app, lambda _: {"token": SecretStr("hunter2")})
    assert (execution.status, len(execution.attempts)) == ("FAILED", 1)
    assert execution.error
    assert execution.error.message.startswith("content.token: is a secret")
