"""Pydantic models as JSON: what was given is what the same model reads again, however it names and hides its fields."""

from __future__ import annotations

import enum
import json
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    Json,
    PlainSerializer,
    RootModel,
    SecretStr,
    SerializeAsAny,
    TypeAdapter,
    computed_field,
    create_model,
)
from pydantic.dataclasses import dataclass

from cloudsched.domain.documents.json_limits import to_json_value
from cloudsched.domain.documents.model_json import read_json
from cloudsched.errors import InvalidInput


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int = Field(validation_alias=AliasChoices(AliasPath("in", "a"), "x"))
    b: str = Field(default="", serialization_alias="a")

    @computed_field  # type: ignore[prop-decorator]  # as pydantic has it
    @property
    def both(self) -> str:
        return f"{self.a}{self.b}"


@dataclass
class Point:
    x: int
    y: Annotated[int, Field(validation_alias="z")] = 0


class Names(RootModel[list[str]]):
    pass


INNER = st.builds(lambda a, b: Inner.model_validate({"a": a, "b": b}, by_name=True), st.integers(0, 9), st.text())
INSTANTS = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - its zone
VALUES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers(-(2**63), 2**63 - 1)),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (str | None, st.none() | st.text(max_size=5)),
    (bool, st.booleans()),
    (datetime, INSTANTS),
    (date, st.dates()),
    (timedelta, st.timedeltas(timedelta(-9), timedelta(9))),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-999, max_value=999)),
    (uuid.UUID, st.uuids()),
    (bytes, st.text(max_size=5).map(str.encode)),
    (Colour, st.sampled_from(Colour)),
    (Literal["one", 2], st.sampled_from(["one", 2])),
    (IPv4Address, st.ip_addresses(v=4)),
    (tuple[int, str], st.tuples(st.integers(0, 9), st.text(max_size=3))),
    (set[date], st.sets(st.dates(), max_size=3)),
    (frozenset[int], st.frozensets(st.integers(0, 9), max_size=3)),
    (dict[int, Colour], st.dictionaries(st.integers(0, 9), st.sampled_from(Colour), max_size=3)),
    (Inner, INNER),
    (list[Inner | int], st.lists(INNER | st.integers(0, 9), max_size=3)),
    (dict[str, Inner] | None, st.none() | st.dictionaries(st.text(max_size=3), INNER, max_size=2)),
    (Point, st.builds(lambda x, y: Point(x=x, z=y), st.integers(0, 9), st.integers(0, 9))),  # type: ignore[call-arg]
    (Names, st.lists(st.text(max_size=3), max_size=2).map(Names)),
]
JSON_FIELD: tuple[Any, st.SearchStrategy[Any]] = (
    Json[dict[str, list[date]]],
    st.dictionaries(st.text(max_size=3), st.lists(st.dates().map(str), max_size=2), max_size=2).map(json.dumps),
)
NAMINGS: list[Any] = [
    lambda _, __: {},
    lambda name, _: {"alias": f"{name}Both"},
    lambda name, _: {"validation_alias": f"{name}In"},
    lambda name, _: {"serialization_alias": f"{name}Out"},
    lambda name, _: {"validation_alias": f"{name}In", "serialization_alias": f"{name}Out"},
    lambda name, _: {"validation_alias": AliasChoices(f"{name}One", f"{name}Two")},
    lambda name, _: {"validation_alias": AliasPath("path", name, "end")},
    lambda _, number: {"validation_alias": AliasPath("list", number)},
    lambda name, number: {"validation_alias": AliasChoices(AliasPath("deep", number, name), f"{name}Else")},
]
"""How a field is named, where it is read and where it is written."""


class Total(BaseModel):
    @computed_field(alias="f0")  # type: ignore[prop-decorator]  # as pydantic has it
    @property
    def total(self) -> int:
        return 3


@st.composite
def models(draw: st.DrawFn, *, with_hidden: bool = True) -> BaseModel:
    fields, values = dict[str, Any](), dict[str, Any]()
    count, are_swapped = draw(st.integers(1, 4)), draw(st.booleans())
    for number in range(count):
        name = f"f{number}"
        annotation, strategy = draw(st.sampled_from([*VALUES, JSON_FIELD]))
        values[name] = draw(strategy)
        more: dict[str, Any] = draw(st.sampled_from(NAMINGS))(name, number)
        if are_swapped:
            more = {"validation_alias": f"f{(number + 1) % count}", "serialization_alias": f"f{(number + 2) % count}"}
        if with_hidden:
            more["exclude"] = draw(st.booleans())
        if draw(st.booleans()):
            more["default_factory"] = dict
        fields[name] = (annotation, Field(**more))
    extra = draw(st.sampled_from(["ignore", "allow", "forbid", None]))
    config = ConfigDict(strict=draw(st.booleans()), **({"extra": extra} if extra else {}))  # type: ignore[typeddict-item]
    base = create_model("Base", __config__=config, **fields)
    kind: type[BaseModel] = type("Made", (Total, base), {}) if draw(st.booleans()) else base
    if extra == "allow":
        values["more"] = draw(st.integers(0, 9))
    return kind.model_validate(values, by_alias=False, by_name=True, strict=False)


@given(model=models())
def test_a_model_reads_again_what_it_was(model: BaseModel) -> None:
    """As a payload, an event's payload or a step's result, alone and within maps and lists."""
    adapter = TypeAdapter(type(model))
    assert read_json(adapter, to_json_value("payload", model)) == model
    written = to_json_value("payload", {"in": [model]})
    within: Any = dict[str, list[type(model)]]  # type: ignore[misc]  # known only here
    assert read_json(TypeAdapter(within), written) == {"in": [model]}


@given(model=models(with_hidden=False))
def test_a_result_is_what_readers_expect_or_else_what_the_model_reads(model: BaseModel) -> None:
    """The caller of a handler gets the model back. Who reads the record sees what Pydantic writes, where that is so."""
    shown = to_json_value("content", model, for_readers=True)
    assert read_json(TypeAdapter(type(model)), shown) == model


class Animal(BaseModel):
    name: str = ""


class Dog(Animal):
    breed: str = ""


class Cage(BaseModel):
    animal: Animal = Animal()
    others: list[Animal | Dog] = []
    more: SerializeAsAny[Animal] = Animal()
    shout: Annotated[str, PlainSerializer(str.upper)] = ""
    marked: Annotated[str, AfterValidator(lambda text: text and f"{text}!")] = ""
    dropped: Annotated[list[int], PlainSerializer(lambda items: items[:1])] = []


class Encoded(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64")
    content: bytes


@pytest.mark.parametrize(
    ("model", "place"),
    [
        (Cage(animal=Dog(breed="pug")), "animal"),
        (Cage(more=Dog(breed="pug")), "more"),
        (Cage(shout="a"), "shout"),
        (Cage(marked="a"), "marked"),
        (Cage(dropped=[1, 2]), "dropped"),
        (Encoded(content=b"a"), "content"),
    ],
    ids=repr,
)
def test_a_model_that_would_be_read_as_something_else_is_refused(model: BaseModel, place: str) -> None:
    """Its handler would work with a part of it, or with other values."""
    with pytest.raises(InvalidInput, match=rf"payload\.in\.0\.{place}: would be read from its JSON as something else"):
        to_json_value("payload", {"in": [model]})


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StrictDog(Strict):
    breed: str


@dataclass
class Tall(Point):
    height: int = 0


class Zoo(BaseModel):
    animals: list[Animal]
    strict: Strict | None = None
    point: Point | None = None

    @computed_field  # type: ignore[prop-decorator]  # as pydantic has it
    @property
    def count(self) -> int:
        return len(self.animals)


@pytest.mark.parametrize(
    ("strict", "computed"), [(None, {"count": 1}), (StrictDog(breed="pug"), {})], ids=["readable", "unreadable"]
)
def test_a_result_keeps_what_a_subclass_adds(strict: Strict | None, computed: dict[str, int]) -> None:
    """In a field of its base, as Pydantic writes any other field. Nothing says what would be lost."""
    zoo = Zoo(animals=[Dog(name="Rex", breed="pug")], strict=strict, point=Tall(x=1, height=2))
    shown = to_json_value("content", {"in": [zoo]}, for_readers=True)["in"][0]
    assert shown["animals"] == [{"name": "Rex", "breed": "pug"}]
    assert shown["strict"] == (None if strict is None else {"breed": "pug"})
    assert (shown["point"]["x"], shown["point"]["height"]) == (1, 2)
    assert {name: shown[name] for name in shown.keys() - {"animals", "strict", "point"}} == computed


class Spy(Animal):
    password: SecretStr


def test_a_secret_of_a_subclass_is_refused_in_a_result() -> None:
    """JSON would have stars in its place."""
    with pytest.raises(InvalidInput, match=r"content\.in\.animals\.0\.password: is a secret"):
        to_json_value("content", {"in": Zoo(animals=[Spy(password=SecretStr("hunter2"))])}, for_readers=True)


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow", use_enum_values=True)
    any: Any = None
    url: HttpUrl = "http://example.com"  # type: ignore[assignment]  # as many models have it
    colour: Colour = Colour.BLUE
    at: datetime = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Paris"))
    names: set[str] = set()
    _note: str = "private"

    @cached_property
    def cached(self) -> str:
        return "more"


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of the URL
@pytest.mark.parametrize("value", [datetime(2026, 1, 1, tzinfo=UTC), (1, 2), {3}, Dog(name="Rex"), {1: "a"}], ids=repr)
def test_what_only_takes_another_form_in_json_is_accepted(value: object) -> None:
    """Fields of any type, defaults that were not validated, and the same instant in another zone."""
    model = Loose(any=value, more=value, names=set("abcdefgh"))
    assert model.cached
    assert read_json(TypeAdapter(Loose), to_json_value("payload", model)).names == model.names


class Account(BaseModel):
    name: str
    note: str = Field(default="", exclude=True)

    @computed_field  # type: ignore[prop-decorator]  # as pydantic has it
    @property
    def greeting(self) -> str:
        return f"Hello {self.name}"


def test_readers_see_computed_fields_and_nothing_that_is_excluded() -> None:
    """Whoever gets it back in code has all its fields, and computes the others itself."""
    account = Account(name="Ada", note="private")
    assert to_json_value("content", [account], for_readers=True) == [{"name": "Ada", "greeting": "Hello Ada"}]
    assert to_json_value("payload", [account]) == [{"name": "Ada", "note": "private"}]


class Crossed(BaseModel):
    whole: list[int] = Field(validation_alias="numbers")
    first: int = Field(validation_alias=AliasPath("numbers", 0))


def test_two_fields_that_are_read_from_one_place_must_agree() -> None:
    """If not, none of the two is lost in silence."""
    agreed = Crossed(numbers=[1, 2])
    assert to_json_value("payload", agreed) == {"numbers": [1, 2]}
    agreed.first = 5
    with pytest.raises(InvalidInput, match=r"numbers\.0: has two values"):
        to_json_value("payload", agreed)


class Login(BaseModel):
    password: SecretStr = Field(validation_alias=AliasPath("credentials", "password"))


def test_a_secret_is_refused_wherever_it_is_read_from() -> None:
    """JSON would have stars in its place."""
    login = Login.model_validate({"credentials": {"password": "hunter2"}})
    for for_readers in (False, True):
        with pytest.raises(InvalidInput, match="is a secret"):
            to_json_value("payload", {"in": [login]}, for_readers=for_readers)


class Counts(BaseModel):
    by_key: dict[Any, int]


@pytest.mark.parametrize(
    "value",
    [{1: "a", "1": "b"}, [{"a": ({True: 1, "true": 2},)}], {None: 1, "None": 2}, Counts(by_key={2: 1, "2": 2})],
    ids=repr,
)
def test_keys_that_are_the_same_in_json_are_refused(value: object) -> None:
    """One of the two values would be lost."""
    with pytest.raises(InvalidInput, match="which are the same in JSON: one would be lost"):
        to_json_value("content", value, for_readers=True)


def test_keys_that_differ_in_json_become_texts() -> None:
    """Each value is kept."""
    assert to_json_value("content", {1: "a", 2: "b", "x": {Colour.BLUE: 0}}) == {"1": "a", "2": "b", "x": {"2": 0}}
