"""The stored form of a step's result, so that it comes back as the type that the function's annotation names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_serializer
from pydantic.alias_generators import to_camel
from tests.engine.harness import DAY, run

from cloudsched import App, Context
from cloudsched.errors import StepFailed


class Read(BaseModel):
    model_config = ConfigDict(extra="forbid")
    total: int = Field(validation_alias="grandTotal")


class Count(BaseModel):
    model_config = ConfigDict(extra="forbid")
    total: int = Field(validation_alias="count")


class Lenient(BaseModel):
    """A field not found under its alias has a default: nothing fails, but the value would differ."""

    total: int = Field(default=0, validation_alias="grandTotal")


class Written(BaseModel):
    model_config = ConfigDict(extra="forbid")
    total: int = Field(serialization_alias="grandTotal")


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")
    grand_total: int


class Outer(BaseModel):
    parts: dict[str, list[Written]]


class OneWay(BaseModel):
    """A model whose serialized form cannot be parsed as the model."""

    total: int

    @field_serializer("total")
    def say(self, total: int) -> str:
        return f"{total} in all"


def read() -> Read:
    return Read(grandTotal=5)


def make_lenient() -> Lenient:
    return Lenient(grandTotal=5)


def make_outer() -> Outer:
    return Outer(parts={"a": [Written(total=5)]})


def make_several() -> list[Read | Count]:
    """Return two models that can be told apart only by the names by which they are read."""
    return [Read(grandTotal=5), Count(count=6)]


def make_camel() -> Camel:
    return Camel(grandTotal=5)


def make_instant() -> datetime:
    return datetime(2027, 1, 1, tzinfo=UTC)


def make_one_way() -> OneWay:
    return OneWay(total=5)


def break_annotation() -> int:
    return "five"  # type: ignore[return-value]


KEPT: dict[Callable[[], Any], Any] = {
    read: {"grandTotal": 5},
    make_lenient: {"grandTotal": 5},
    make_outer: {"parts": {"a": [{"total": 5}]}},
    make_several: [{"grandTotal": 5}, {"count": 6}],
    make_camel: {"grandTotal": 5},
    make_instant: "2027-01-01T00:00:00Z",
    break_annotation: "five",
}


@pytest.mark.parametrize("function", KEPT, ids=lambda each: each.__name__)
def test_a_result_comes_back_the_first_time_and_in_every_replay(app: App, function: Callable[[], Any]) -> None:
    """By the names by which its own model reads it."""
    results = list[object]()

    def call(ctx: Context) -> None:
        results.append(ctx.step("s", function))
        ctx.sleep(DAY)
        results.append(ctx.step("t", function))

    execution = run(app, call)
    assert execution.status == "SUCCEEDED", execution.error
    assert results == [function()] * 3
    assert execution.steps[0].result == KEPT[function]


def test_a_result_that_cannot_be_read_back_fails_with_an_explanation(app: App) -> None:
    """It is not tried again: the step is done, and would return the same."""
    did, caught = list[int](), list[str]()

    @wraps(make_one_way)
    def count_calls() -> object:
        did.append(1)
        return make_one_way()

    def call(ctx: Context) -> None:
        try:
            ctx.step("s", count_calls)
        except StepFailed as failed:
            caught.append(str(failed))
        ctx.sleep(DAY)

    assert run(app, call).status == "SUCCEEDED"
    assert (did, len(caught), caught[0] == caught[1]) == ([1], 2, True)
    assert "cannot be decoded from JSON as the function's return annotation" in caught[0]
    assert "total: Input" in caught[0]


def test_a_result_that_its_annotation_would_cut_fails_with_an_explanation(app: App) -> None:
    """What its class adds to the annotation's would be lost."""

    class Longer(Lenient):
        more: int

    def make() -> Lenient:
        return Longer(grandTotal=5, more=6)

    def call(ctx: Context) -> None:
        ctx.step("s", make)

    error = run(app, call).error
    assert error is not None
    assert "Let the function's return annotation name its class" in error.message
