"""Reading a body costs what its size says: nothing in it is compared with all the rest of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.web.conftest import Call

from cloudsched.web.api.parse import MAX_VALUES

NAMES = 80_000


def test_a_name_that_stands_twice_is_found_in_one_pass(call: Call) -> None:
    """Each name is compared with none of the others. Comparisons are counted: those of a `str` that reports them."""
    from cloudsched.web.api import parse  # noqa: PLC0415 - its parser is called with names of its own

    compared = 0

    class Name(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    pairs: list[tuple[str, Any]] = [(Name(number), 0) for number in range(3000)]
    with pytest.raises(ValueError, match="'2999' appears twice"):
        parse._reject_duplicates([*pairs, (Name(2999), 0)])  # noqa: SLF001 - json calls it
    assert compared < 20_000
    twice = "{" + ",".join(f'"{number}":0' for number in range(NAMES)) + f',"{NAMES - 1}":0}}'
    answer = call("POST", "/v1/tasks", twice.encode())
    assert (answer.status_code, answer.get_json()["field"]) == (400, "(body)")
    assert f"'{NAMES - 1}' appears twice" in answer.get_json()["detail"]


def test_a_body_has_so_many_values_at_most(call: Call) -> None:
    """More are refused before they are made; commas and braces within texts are none."""
    many = b'{"payload":{"a":[' + b"0," * MAX_VALUES + b"0]}}"
    answer = call("POST", "/v1/tasks", many)
    assert (answer.status_code, answer.get_json()["field"]) == (400, "(body)")
    assert "values" in answer.get_json()["detail"]
    text = {"owner": "ada", "title": "t", "handler": "anything", "payload": {"a": "[" * 110_000}}
    assert call("POST", "/v1/tasks", json.dumps(text).encode()).status_code == 201


def test_a_path_is_written_for_the_value_that_is_refused_only(call: Call) -> None:
    """Names of 1,490 letters, 14 of them around 50,000 numbers, are not written out once a number: that took 1 GB."""
    value: Any = [0] * 50_000
    for number in range(14):
        value = {"k" * 1490 + str(number): value}
    body = {"owner": "ada", "title": "t", "handler": "anything", "payload": value}
    import tracemalloc  # noqa: PLC0415 - only here

    tracemalloc.start()
    try:
        assert call("POST", "/v1/tasks", json.dumps(body).encode()).status_code == 201
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60_000_000
