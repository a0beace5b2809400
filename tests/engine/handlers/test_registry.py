"""A mistake in a handler is found when its module is imported, not when its task is due."""
# ruff: noqa: ANN401, ARG001 - handlers are written in every way here

from __future__ import annotations

import functools
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel
from tests.cases import try_each
from tests.engine.harness import HOUR

from cloudsched import App, Context, Settings
from cloudsched.errors import InvalidPayload, Misconfigured

if TYPE_CHECKING:
    from decimal import Decimal  # a name that is not there when an annotation is read


class Model(BaseModel):
    name: str = "x"


class Callable:
    def __call__(self, payload: Model) -> None: ...


async def async_generator() -> Any:
    yield 1


def generator() -> Any:
    yield 1


def two(first: Model, second: Model) -> None: ...


def bare(payload) -> None: ...  # type: ignore[no-untyped-def] # noqa: ANN001 - the mistake


def keyword(*, payload: Model) -> None: ...


def hidden(payload: Decimal) -> None: ...


def impossible(payload: Callable) -> None: ...


def fine(ctx: Context, payload: Model) -> str:
    return payload.name


@try_each(
    "function",
    [async_generator, generator, two, bare, keyword, hidden, impossible, Callable(), functools.partial(fine)],
)
def test_a_function_that_cannot_be_called_is_refused(function: Any) -> None:
    """The message names the handler and says what to write instead."""
    with pytest.raises(Misconfigured, match="it"):
        App(Settings()).handler("it")(function)


@pytest.mark.parametrize("name", ["", "x" * 201, None, fine])
def test_a_handler_needs_a_name(name: Any) -> None:
    """The decorator without parentheses is refused as well, rather than never registering the handler."""
    with pytest.raises(Misconfigured, match="is registered by its name"):
        App(Settings()).handler(name)


@pytest.mark.parametrize(
    "option",
    [
        {"retry": -1},
        {"retry": 101},
        {"expected_duration": timedelta(0)},
        {"expected_duration": 2 * HOUR},
        {"retry_on": "ValueError"},
        {"retry_on": (ValueError, KeyboardInterrupt)},
    ],
)
def test_an_option_that_no_task_could_be_stored_with_is_refused(option: dict[str, Any]) -> None:
    """The defaults of a handler are held to the limits of the task's own fields."""
    with pytest.raises(Misconfigured, match="it"):
        App(Settings()).handler("it", **option)


def test_a_handler_without_a_payload_refuses_one(app: App) -> None:
    """A payload that the handler would ignore is refused."""

    @app.handler("it")
    def it(ctx: Context) -> None: ...

    with pytest.raises(InvalidPayload, match="takes no payload"):
        app.container.registry.get("it").parse_payload({"a": 1})
    assert app.container.registry.get("it").parse_payload({}) is None


def context_bare(ctx, payload: Model) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001 - it is the mistake


def context_last(payload: Model, ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (context_bare, "has a first parameter 'ctx' without an annotation; annotate it: `ctx: Context`."),
        (context_last, "has its Context in 'ctx', after another parameter; make it the first."),
    ],
)
def test_a_misplaced_context_parameter_is_explained(function: Any, says: str) -> None:
    """The error names the correction instead of reporting too many parameters."""
    with pytest.raises(Misconfigured) as refused:
        App(Settings()).handler("greet")(function)
    assert str(refused.value) == f"Handler 'greet' {says}"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"access": "everybody"}, 'access is \'everybody\'; give "users" or "servers"'),
        ({"access": "users", "user_max_priority": "URGENT"}, "user_max_priority is 'URGENT'"),
        ({"access": "users", "user_queues": "gpu"}, "user_queues is 'gpu'; give names"),
        ({"access": "users", "user_queues": ["a queue"]}, "user_queues is"),
        ({"access": "users", "user_queues": 3}, "user_queues is 3"),
        ({"user_queues": ["gpu"]}, 'are for handlers with access="users"'),
        ({"user_max_priority": "LOW"}, 'are for handlers with access="users"'),
    ],
)
def test_invalid_user_permissions_are_refused_at_import(options: dict[str, Any], problem: str) -> None:
    """A misspelled access must not silently open or close a handler."""
    with pytest.raises(Misconfigured) as raised:
        App(Settings()).handler("render", **options)
    assert problem in str(raised.value)


@pytest.mark.parametrize(("option", "hint"), [("quick", "There are retry, "), ("retires", "Did you mean 'retry'?")])
def test_an_unknown_option_is_refused_at_import(option: str, hint: str) -> None:
    """With what there is instead; a type checker refuses it, too."""
    with pytest.raises(Misconfigured, match=f"'work' has no option '{option}'. {re.escape(hint)}"):
        App(Settings()).handler("work", **{option: True})  # type: ignore[arg-type]
