"""What a payload may contain: unknown fields, missing fields, secrets, and names that no URL carries."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Self

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    WrapValidator,
    field_serializer,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass
from tests.cases import try_each
from tests.engine.harness import HOUR, MINUTE, only_run

from cloudsched import App, Context, ExecutionStatus, Schedule, Settings
from cloudsched.errors import InvalidInput, InvalidPayload, Misconfigured
from cloudsched.testing import START, Simulation


class Line(BaseModel):
    text: str
    size: int = 1


class Letter(BaseModel):
    to: str
    sent_at: Annotated[str, Field(alias="sentAt")] = ""
    lines: list[Line] = []
    by_name: dict[str, Line] = {}
    best: Line | None = None
    either: Line | str = ""
    answers: list[Letter] = []

    @field_validator("to")
    @classmethod
    def has_name(cls, to: str) -> str:
        return to


class Ignoring(BaseModel):
    model_config = ConfigDict(extra="ignore")
    to: str


class Allowing(BaseModel):
    model_config = ConfigDict(extra="allow")
    to: str


class Rewriting(BaseModel):
    to: str

    @model_validator(mode="before")
    @classmethod
    def rename(cls, data: Any) -> Any:  # noqa: ANN401 - whatever comes
        return {"to": data.get("recipient", data.get("to"))}


def register(app: App, kind: Any) -> None:  # noqa: ANN401 - any annotation
    def handle(payload: Any) -> None: ...  # noqa: ANN401 - the same

    handle.__annotations__["payload"] = kind
    app.handler("letter")(handle)


def create(app: App, payload: dict[str, Any], **more: Any) -> Any:  # noqa: ANN401 - a task
    return app.create(handler="letter", payload=payload, **more)


UNKNOWN: dict[str, tuple[dict[str, Any], str]] = {
    "top": ({"to": "x", "subject": "y"}, "payload.subject: is not a field of Letter (Letter has to: str, sentAt: "),
    "typo": ({"too": "x"}, "payload.too: is not a field of Letter (Did you mean 'to'? Letter has to: str"),
    "python name": ({"to": "x", "sent_at": "y"}, "payload.sent_at: is not a field of Letter (Did you mean 'sentAt'?"),
    "list": (
        {"to": "x", "lines": [{"text": "a"}, {"text": "b", "sise": 2}]},
        "payload.lines.1.sise: is not a field of ",
    ),
    "dict": (
        {"to": "x", "by_name": {"k": {"txt": "b"}}},
        "payload.by_name.k.txt: is not a field of Line (Did you mean ",
    ),
    "recursive": ({"to": "x", "answers": [{"to": "y", "cc": "z"}]}, "payload.answers.0.cc: is not a field of Letter"),
}


@pytest.mark.parametrize(("payload", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_field_is_refused_by_create_and_edit(app: App, payload: dict[str, Any], message: str) -> None:
    """With the nearest name, and the fields that there are; nothing is stored."""
    register(app, Letter)
    with Simulation(app):
        task = create(app, {"to": "x"})
        for attempt in (lambda: create(app, payload), lambda: app.update(task.id, payload=payload)):
            with pytest.raises(InvalidPayload) as refused:
                attempt()
            assert str(refused.value).startswith(message)
        assert app.get(task.id).payload == {"to": "x"}
        assert len(app.tasks().items) == 1


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Ignoring, {"to": "x", "more": 1}),
        (Allowing, {"to": "x", "more": 1}),
        (Rewriting, {"recipient": "x"}),
        (dict[str, Any], {"anything": 1}),
        (Letter, {"to": "x", "either": {"text": "a"}, "sentAt": "now"}),
    ],
)
def test_a_model_that_says_what_it_takes_is_respected(app: App, kind: Any, payload: dict[str, Any]) -> None:  # noqa: ANN401 - any annotation
    """An explicit `extra=`, a validator before the fields, or no model at all: it is not for us to refuse."""
    register(app, kind)
    with Simulation(app):
        assert create(app, payload).payload == payload


def test_a_run_takes_what_was_stored(app: App) -> None:
    """A field that the model has lost since is ignored by a run, and by an edit that does not concern the payload."""
    register(app, dict[str, Any])
    with Simulation(app) as sim:
        task = create(app, {"to": "x", "old": 1}, schedule=START + HOUR)
        app.container.registry.registrations.handlers.clear()  # a new version of the code is deployed
        register(app, Letter)
        assert app.update(task.id, title="New").title == "New"
        with pytest.raises(InvalidPayload, match="old"):
            app.update(task.id, payload={"to": "x", "old": 1})
        sim.advance(2 * HOUR)
        record = only_run(sim, task)
        assert record.status is ExecutionStatus.SUCCEEDED


def test_children_and_calls_are_checked_like_tasks(app: App) -> None:
    """They are created, too."""
    register(app, Line)

    @app.handler("call")
    def call(ctx: Context) -> None:
        ctx.call("letter", {"text": "a", "sise": 1})

    with Simulation(app) as sim:
        with pytest.raises(InvalidPayload, match=r"children\.0\.payload\.sise"):
            app.create(title="C", children=[{"handler": "letter", "payload": {"text": "a", "sise": 1}}])
        task = app.create(handler="call", retry=0, schedule=Schedule.once(START))
        sim.advance(MINUTE)
        assert "payload.sise: is not a field of Line" in str(only_run(sim, task).attempts[-1].error)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({}, "payload.to: Field required (Letter has to: str, sentAt: str (optional), lines: list[Line] (optional)"),
        (
            {"to": "x", "lines": [{}]},
            "payload.lines.0.text: Field required (Line has text: str, size: int (optional).)",
        ),
    ],
)
def test_a_missing_field_shows_the_models_fields_and_types(app: App, payload: dict[str, Any], message: str) -> None:
    register(app, Letter)
    with Simulation(app), pytest.raises(InvalidInput) as refused:
        create(app, payload)
    assert str(refused.value).startswith(message)


class Login(BaseModel):
    user: str
    password: SecretStr


class Nested(BaseModel):
    logins: dict[str, list[Login | None]] = {}
    again: Nested | None = None


class Shown(BaseModel):
    password: SecretStr

    @field_serializer("password", when_used="json")
    def reveal(self, password: SecretStr) -> str:
        return password.get_secret_value()


@pytest.mark.parametrize(
    ("kind", "field"), [(Login, "password"), (Nested, "logins.password"), (list[Login], "password")]
)
def test_a_secret_in_a_payload_model_is_refused_at_registration(kind: Any, field: str) -> None:  # noqa: ANN401 - any annotation
    """Payloads are stored and shown: a secret would be stored in plain text, or as stars."""
    with pytest.raises(Misconfigured, match=rf"the payload's {field} is a secret, and payloads are stored"):
        register(App(Settings()), kind)


def test_a_secret_that_its_model_writes_out_is_the_models_decision() -> None:
    register(app := App(Settings()), Shown)
    assert "letter" in app.container.registry


@try_each("name", ["a/b", "..", ".", "a\nb", " a", "a ", "a\\b", "\ud800", "\x7f"])
def test_a_name_that_no_url_carries_is_refused_at_registration(name: str) -> None:
    with pytest.raises(Misconfigured, match="no URL carries this name"):
        App(Settings()).handler(name)


def stumble(text: str) -> str:
    return text.length  # type: ignore[attr-defined,no-any-return]  # the mistake


def exit_at_once(_text: str) -> str:
    sys.exit("no")


class Within(BaseModel):
    text: Annotated[str, AfterValidator(lambda text: text.length)]


@dataclass
class Inside:
    number: Annotated[int, AfterValidator(lambda number: number.length)]


class Stumbling(BaseModel):
    first: Annotated[str, BeforeValidator(stumble), Field(alias="firstName")] = ""
    wrapped: Annotated[str, WrapValidator(lambda text, check: check(text).length)] = ""
    within: dict[str, list[Within]] = {}
    either: str | list[Inside] = ""
    leaving: Annotated[str, AfterValidator(exit_at_once)] = ""
    checked: str = ""
    one: str = ""
    other: str = ""
    whole: str = ""

    @field_validator("checked")
    @classmethod
    def check(cls, text: str) -> str:
        return {"": text}[text]

    @field_validator("one", "other")
    @classmethod
    def check_both(cls, text: str) -> str:
        return stumble(text)

    @model_validator(mode="after")
    def check_all(self) -> Self:
        if self.whole:
            raise RuntimeError(self.whole)
        return self


@pytest.mark.parametrize(
    ("payload", "place", "cause"),
    [
        ({"firstName": "a"}, ".firstName", AttributeError),
        ({"wrapped": "a"}, ".wrapped", AttributeError),
        ({"within": {"a": [{"text": "a"}]}}, ".within.text", AttributeError),
        ({"either": [{"number": 1}]}, ".either.number", AttributeError),
        ({"leaving": "a"}, ".leaving", SystemExit),
        ({"checked": "a"}, ".checked", KeyError),
        ({"other": "a"}, "", AttributeError),
        ({"whole": "a"}, "", RuntimeError),
    ],
    ids=repr,
)
def test_a_validator_with_a_mistake_refuses_the_payload_with_its_field(
    app: App, payload: dict[str, Any], place: str, cause: type[BaseException]
) -> None:
    """Whatever it raises, and with that as the cause. A function that several fields share tells no field."""
    register(app, Stumbling)
    with Simulation(app), pytest.raises(InvalidPayload, match=f"makes its model raise {cause.__name__}") as refused:
        create(app, payload)
    assert (refused.value.field, type(refused.value.__cause__)) == (f"payload{place}", cause)
