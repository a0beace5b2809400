"""A payload goes through the texts of a form and comes back as it was; what is typed wrongly is said at its field."""

from __future__ import annotations

import json
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from cloudsched.dashboard.forms.fields import list_names, make_fields
from cloudsched.dashboard.forms.payload_schema import read_schema
from cloudsched.dashboard.forms.payload_texts import ABSENT, read_value, write_texts
from cloudsched.dashboard.forms.problems import place_error


class Level(StrEnum):
    LOW = "low"
    HIGH = "high"


class Customer(BaseModel):
    name: str = Field(min_length=3, description="Who pays.")
    level: Level = Level.LOW


class Node(BaseModel):
    nodes: list[Node] = []
    count: int = 1


class Order(BaseModel):
    about: str
    count: int = Field(3, ge=1)
    price: float | None = None
    is_rush: bool = False
    day: date
    at: datetime | None = None
    kind: Literal["x", 2] = "x"
    customer: Customer
    payer: Customer | None = None
    tags: list[str] = []
    numbers: list[int] = []
    limits: dict[str, int] = {}
    node: Node | None = None
    either: int | str = 3


SLOT = read_schema(Order.model_json_schema())
WHOLE: dict[str, Any] = {"about": "a", "day": "2027-03-28", "customer": {"name": "ada", "level": "high"}}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FITTING = st.fixed_dictionaries(
    {"about": st.text(), "day": st.just("2027-03-28"), "customer": st.just(WHOLE["customer"])},
    optional={
        "count": st.integers(),
        "price": st.floats(allow_nan=False, allow_infinity=False),
        "is_rush": st.booleans(),
        "kind": st.sampled_from(["x", 2]),
        "payer": st.fixed_dictionaries({"name": st.text(min_size=3)}),
        "tags": st.lists(st.text(), min_size=1),
        "numbers": st.lists(st.integers(), min_size=1),
        "limits": st.dictionaries(st.text(), st.integers(), min_size=1),
        "either": st.integers() | st.text(),
    },
)


@given(FITTING)
@example({**WHOLE, "about": "two\r\nlines"})
def test_a_fitting_payload_comes_back_as_it_was(payload: dict[str, Any]) -> None:
    """Whatever the handler's model accepts can be shown in the form, and sent again unchanged."""
    assert_same(payload)


@given(st.dictionaries(st.sampled_from([*Order.model_fields, "other", "a.b"]), JSON_VALUES))
def test_any_payload_comes_back_as_it_was(payload: dict[str, Any]) -> None:
    """A payload that fits no longer, with wrong types and unknown fields, is not lost either.

    Only null and empty parts of what may be left out are left out: they mean the same to the handler.
    """
    assert_same(payload)


def assert_same(payload: dict[str, Any]) -> None:
    texts = write_texts(SLOT, payload)
    errors: dict[str, str] = {}
    found = read_value(SLOT, texts, errors)
    assert errors == {}
    assert _without_empty(found) == _without_empty(payload)
    names = list_names(make_fields(SLOT, texts, {}))
    assert set(texts) <= set(names), "a text has no field"


def _without_empty(value: object) -> object:
    if isinstance(value, dict):
        kept = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, {}, [], "")}
    return value


@given(st.dictionaries(st.sampled_from([*sorted(write_texts(SLOT, WHOLE)), "payload.count", "payload.*"]), st.text()))
def test_no_text_breaks_the_form(texts: dict[str, str]) -> None:
    """Whatever is typed, the form has a value or says at which field it is wrong."""
    errors: dict[str, str] = {}
    found = read_value(SLOT, texts, errors)
    assert found is not ABSENT
    assert set(errors) <= set(list_names(make_fields(SLOT, texts, errors)))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("payload.count", "three"),
        ("payload.count", "1.5"),
        ("payload.count", "٣"),
        ("payload.price", "Infinity"),
        ("payload.price", "9" * 5000),
        ("payload.is_rush", "perhaps"),
        ("payload.kind", "3"),
        ("payload.numbers", "1\ntwo"),
        ("payload.limits", "{"),
        ("payload.limits", "[" * 100_000),
        ("payload.*", "[1]"),
    ],
)
def test_a_wrong_text_is_said_at_its_field(name: str, text: str) -> None:
    """Not as a value that the handler would take for something else."""
    texts = {**write_texts(SLOT, WHOLE), name: text}
    errors: dict[str, str] = {}
    read_value(SLOT, texts, errors)
    assert list(errors) == [name]


LOOP = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
DEEP: dict[str, Any] = {"type": "string"}
for _ in range(60):
    DEEP = {"type": "object", "properties": {"x": DEEP, "y": DEEP}}


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        LOOP,
        DEEP,
        {"type": "object", "properties": {"x": True, "y": {"$ref": "https://elsewhere.example/schema"}}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"x": {"anyOf": [{"$ref": "#/$defs/none"}]}}},
        {"type": ["object", "null"], "properties": {"x": {"type": ["string", "integer"]}}},
    ],
)
def test_no_schema_breaks_the_form(schema: dict[str, Any] | None) -> None:
    """Loops, depth and what is unknown end in JSON, and a payload goes through unchanged."""
    slot = read_schema(schema)
    payload = {"x": {"x": {"x": [1, {"y": None}]}}, "z": "text"}
    texts = write_texts(slot, payload)
    assert len(make_fields(slot, texts, {})) == 1
    assert json.loads(json.dumps(read_value(slot, texts, {}))) == payload


def test_an_error_is_placed_at_the_nearest_field() -> None:
    """The API's path may go deeper than the form's fields do; one of no field is said above them."""
    names = ["title", "payload.customer.name", "payload.tags", "payload.limits:json", "payload.*"]
    assert place_error("payload.customer.name", names) == "payload.customer.name"
    assert place_error("payload.tags.0", names) == "payload.tags"
    assert place_error("payload.limits.x", names) == "payload.limits:json"
    assert place_error("payload.nothing", names) == "payload.*"
    assert place_error("handler", names) == ""
    assert place_error("titles", names) == ""
