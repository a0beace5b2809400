"""Which JSON may be stored: exactly what every store keeps unchanged."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each

from cloudsched.adapters.firestore.values import decode, encode
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.json_limits import (
    MAX_CONTENT,
    MAX_DEPTH,
    MAX_KEY_BYTES,
    escape_surrogates,
    json_size,
    require_content,
    require_storable,
    stored_size,
)
from cloudsched.errors import InvalidInput

LIMIT = 100_000
ANY_TEXT = st.text() | st.text(st.characters(categories=["Cs", "Ll"]))
"""Of all texts hardly one has a lone surrogate, so half of these are made of surrogates and small letters."""
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(min_size=1, max_size=4).filter(lambda key: "__" not in key), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(value=JSON)
def test_any_json_can_be_stored_in_firestore(value: object) -> None:
    """Nested lists too, although Firestore itself refuses them."""
    require_storable("payload", value, LIMIT)
    assert decode({"payload": encode(value)}) == {"payload": value}
    assert json.loads(json.dumps(value)) == value


@try_each(
    "value, field",
    [
        ({"a": [1, 2**63]}, "payload.a.1"),
        ({"a": {"b": float("inf")}}, "payload.a.b"),
        (float("nan"), "payload"),
        ({"a": object()}, "payload.a"),
        ({1: 2}, "payload"),
        ({"": 2}, "payload"),
        ({"__a__": 2}, "payload"),
        ({"\ud800": 2}, "payload"),
        ({"ü" * (MAX_KEY_BYTES // 2 + 1): 2}, "payload"),
        (["\udfff"], "payload.0"),
        ({"a": {1, 2}}, "payload.a"),
    ],
)
def test_values_that_a_store_would_change_are_refused_by_path(value: object, field: str) -> None:
    """The error names the path of exactly the value that is wrong."""
    with pytest.raises(InvalidInput) as caught:
        require_storable("payload", value, LIMIT)
    assert caught.value.field == field
    assert caught.value.hint


def test_the_nesting_depth_is_limited() -> None:
    """The limit itself is accepted, one level more is refused, and far more does not exhaust the stack."""

    def nested(depth: int) -> object:
        value: object = 1
        for _ in range(depth):
            value = [value]
        return value

    require_storable("payload", nested(MAX_DEPTH), LIMIT)
    for depth in (MAX_DEPTH + 1, 5000):
        with pytest.raises(InvalidInput, match="nested"):
            require_storable("payload", nested(depth), LIMIT)


@given(text=ANY_TEXT)
def test_any_text_can_be_made_storable(text: str) -> None:
    """Lone surrogates become escapes; all other text is unchanged."""
    made = escape_surrogates(text)
    require_storable("text", made, LIMIT)
    try:
        text.encode()
    except UnicodeEncodeError:
        assert made != text
    else:
        assert made == text


@given(texts=st.lists(ANY_TEXT, max_size=4))
def test_the_size_of_json_is_that_of_its_text(texts: list[str]) -> None:
    """In UTF-8, in which a lone surrogate would have three bytes: it is refused later, with a better message."""
    value = {"texts": texts, "count": len(texts), "more": None}
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert json_size(value) == len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("value", "is_kept"),
    [
        ("x" * 524_000, True),
        ([1] * 115_000, True),
        ([1] * 116_000, False),
        ([["中" * 100]] * 1_500, True),
        ([["中" * 100]] * 1_600, False),
    ],
    ids=["text", "numbers", "too many numbers", "texts in lists", "too many texts"],
)
def test_the_size_of_a_result_is_counted_as_firestore_does(value: object, *, is_kept: bool) -> None:
    """A number has eight bytes however short its JSON is; a nested list has the bytes of its JSON in ASCII."""
    assert json_size(value) <= MAX_CONTENT
    if is_kept:
        require_content("content", value)
        assert stored_size(value) < 1024 * 1024
    else:
        with pytest.raises(InvalidInput, match="as Firestore counts them"):
            require_content("content", value)


@try_each(
    "value, size",
    [
        *((None, 1), (True, 1), (7, 8), (1.5, 8), (datetime(2027, 1, 1, tzinfo=UTC), 8)),
        *(("abc", 4), ("é", 3), ("\ud800", 4), (ExecutionStatus.SUCCEEDED, 10)),
        *(({}, 0), ({"ab": 1}, 3 + 8), ({"a": {"é": None}}, 2 + 3 + 1)),
        *(([], 0), ([1, "a", None], 8 + 2 + 1), ((1, False), 8 + 1), ([{"a": (1,)}], 2 + 8)),
        *(([[1, 2], 3, "a"], len("[1,2]") + 8 + 2), ([(1, None), {}, True], len("[1,null]") + 1)),
    ],
)
def test_a_value_has_the_size_that_firestore_counts(value: object, size: int) -> None:
    """A text has its bytes and one more, a number or an instant 8, a list within a list the bytes of its JSON."""
    assert stored_size(value) == size
