"""The size of a document is what Firestore counts, and texts are cut in bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudsched.domain.documents.json_limits import (
    MAX_DOCUMENT_BYTES,
    STORE_BYTES,
    document_size,
    escape_surrogates,
    find_largest_part,
    require_document_fits,
    stored_size,
    truncate,
)
from cloudsched.errors import InvalidInput

TASK = ("tasks", "t1")


def test_the_size_is_that_of_googles_example() -> None:
    """The 147 bytes that firebase.google.com/docs/firestore/storage-size calculates for this document."""
    data = {"type": "Personal", "done": False, "priority": 1, "description": "Learn Cloud Firestore"}
    assert document_size(("users", "jeff", "tasks", "my_task_id"), data) == 147


@given(size=st.integers(-200, 200))
def test_a_document_has_a_limit(size: int) -> None:
    """Up to 1 MiB with the fields that a store adds, and no byte more; a cheap upper bound spares the counting."""
    room = MAX_DOCUMENT_BYTES - document_size(TASK, {"payload": ""}) - STORE_BYTES
    data = {"payload": "x" * (room + size)}
    if size <= 0:
        require_document_fits(TASK, 10 * MAX_DOCUMENT_BYTES, lambda: data)
    else:
        with pytest.raises(InvalidInput, match=r"payload: has .* bytes that tasks/t1 would have"):
            require_document_fits(TASK, 10 * MAX_DOCUMENT_BYTES, lambda: data)
    require_document_fits(TASK, 1000, lambda: pytest.fail("it is certainly small enough"))


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"a": "x" * 9, "b": "x" * 10}, "b"),
        ({"source": {"context": {"page": "x" * 99, "user": "x" * 9}}, "payload": "x" * 50}, "source.context.page"),
        ({"payload": {"list": ["x"] * 99}}, "payload.list"),
        ({"runs": [{"error": "x" * 9}, {"error": "中" * 99}]}, "runs.1.error"),
        ({}, "(body)"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_part_that_is_too_large_is_named(data: dict[str, Any], path: str) -> None:
    """As deep as one part makes up most of what it is a part of."""
    assert find_largest_part(data)[0] == path


@given(text=st.text(st.characters(codec=None, categories=None)), size=st.integers(1, 40), keeps_end=st.booleans())
def test_a_text_is_cut_in_bytes(text: str, size: int, *, keeps_end: bool) -> None:
    """What remains is as long as it may be, has whole characters only, and can be stored."""
    cut = truncate(text, size, keeps_end=keeps_end)
    whole = escape_surrogates(text)
    assert stored_size(cut) <= size + 1
    assert whole.endswith(cut) if keeps_end else whole.startswith(cut)
    if len(whole.encode()) > size:
        assert len(cut.encode()) > size - 4
    else:
        assert cut == whole
