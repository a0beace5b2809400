"""What pydantic hides when it says it as JSON would be stored hidden, and lost: it is refused instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field, Secret, SecretBytes, SecretStr, field_serializer
from tests.engine.harness import create, register_work_handler, run

from cloudsched import App, Context, Settings
from cloudsched.errors import InvalidInput
from cloudsched.testing import Simulation


class Login(BaseModel):
    user: str = "ada"
    pw: SecretStr = SecretStr("")


class Deep(BaseModel):
    logins: list[dict[str, Login]] = []
    key: SecretBytes | None = Field(default=None, alias="apiKey")
    pin: Secret[int] | None = None


class Shown(BaseModel):
    """Who says what a secret is has decided so."""

    pw: SecretStr

    @field_serializer("pw", when_used="json")
    def reveal(self, pw: SecretStr) -> str:
        return pw.get_secret_value()


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
def app() -> App:
    app = App(Settings())

    @app.handler("login")
    def login(payload: dict[str, Any]) -> Any:  # noqa: ANN401 - what it was given
        return payload

    return app


@pytest.mark.parametrize("case", SECRETS)
def test_a_secret_is_no_payload(app: App, case: str) -> None:
    """Of a task, of a call, or in an edit; the error says where it stands and what to do, and not what it is."""
    payload, field = SECRETS[case]
    said = list[InvalidInput]()

    def ask(ctx: Context) -> None:
        with pytest.raises(InvalidInput) as refused:
            ctx.call("login", payload)
        said.append(refused.value)

    register_work_handler(app, ask)
    with Simulation(app) as sim:
        with pytest.raises(InvalidInput) as refused:
            app.create(owner="ada", title="Log in", handler="login", payload=payload)
        said.append(refused.value)
        task = create(app, handler="login")
        with pytest.raises(InvalidInput) as refused:
            app.update(task.id, payload=payload)
        said.append(refused.value)
        create(app)
        sim.run_until_idle()
    assert [each.field for each in said] == [field] * 3
    assert all("is a secret" in str(each) and "name of the secret" in str(each) for each in said)
    assert not any("hunter2" in str(each) or "4711" in str(each) for each in said)


@pytest.mark.parametrize(
    ("payload", "stored"),
    [
        (Login(), {"user": "ada", "pw": ""}),
        (Login(user="**********"), {"user": "**********", "pw": ""}),
        (Shown(pw=SecretStr("**********")), {"pw": "**********"}),
        (Shown(pw=SecretStr("hunter2")), {"pw": "hunter2"}),
    ],
    ids=["no secret", "stars", "shown stars", "shown"],
)
def test_what_hides_nothing_is_a_payload(app: App, payload: BaseModel, stored: dict[str, str]) -> None:
    register_work_handler(app, lambda ctx: ctx.call("login", payload).result())
    assert run(app).content == stored


@pytest.mark.parametrize("result", [SecretStr("hunter2"), Login(pw=SecretStr("hunter2")), [Plain(SecretStr("x"))]])
def test_a_secret_is_no_result_of_a_step(app: App, result: object) -> None:
    """A replay would be given what hides it."""
    register_work_handler(app, lambda ctx: ctx.step("log in", lambda: result))
    execution = run(app)
    assert execution.error
    assert execution.error.type == "StepFailed"
    assert "is a secret" in execution.error.message
    assert "hunter2" not in str(execution)


def test_a_secret_is_no_result_of_a_handler(app: App) -> None:
    register_work_handler(app, lambda _: {"token": SecretStr("hunter2")})
    execution = run(app)
    assert (execution.status, len(execution.attempts)) == ("FAILED", 1)
    assert execution.error
    assert execution.error.message.startswith("content.token: is a secret")
