"""`App`, `AsyncApp`, `Client` and `AsyncClient` have the same methods, with arguments of the same names."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from cloudsched import App, AsyncApp
from cloudsched.client import AsyncClient, Client
from cloudsched.client.worker_operations import WorkerOperations
from cloudsched.domain.documents.verbs import Verb
from cloudsched.errors import Forbidden

FACES = (App, AsyncApp, Client, AsyncClient)
OF_CONNECTIONS = {"close", "run_flow", "run_flow_async", "face"}
FOR_STATE = {"etag", "validate_only", "draft", "transaction", "batch", "sender", "limit", "page_token", "query"}
"""What only some of them take: conditions of HTTP, transactions of the own store, and the pages of lists."""


def list_methods(face: type) -> set[str]:
    return {name for name in dir(face) if not name.startswith("_")} - OF_CONNECTIONS - set(vars(WorkerOperations))


SHARED = sorted(list_methods(Client))


@pytest.mark.parametrize("name", SHARED)
def test_each_has_what_a_client_has(name: str) -> None:
    """By the same name and with the same arguments, which a reader of one can use on another."""
    missing = [face for face in FACES if not hasattr(face, name)]
    assert not missing
    found = {face.__name__: getattr(face, name) for face in FACES}
    arguments = {
        face: [each for each in inspect.signature(method).parameters if each not in FOR_STATE]
        for face, method in found.items()
    }
    if name in {"tasks", "executions", "find_executions", "inbox", "draft", "confirm"}:
        return  # lists of pages, and drafts for others than users
    assert len({frozenset(each) for each in arguments.values()}) == 1, arguments


@pytest.mark.parametrize("face", FACES)
def test_each_has_a_method_for_each_verb(face: type) -> None:
    """The table makes all other doors. These methods are written by hand, and the doors call them."""
    methods = [each.method for each in Verb if each is not Verb.EDIT]
    assert [name for name in (*methods, "update") if not hasattr(face, name)] == []


@pytest.mark.parametrize("name", SHARED)
def test_what_is_awaited_is_a_coroutine_function(name: str) -> None:
    """Editors, and frameworks that ask, know it."""
    for face in (AsyncApp, AsyncClient):
        method: Any = getattr(face, name)
        returned = str(inspect.signature(method).return_annotation)
        is_list = "Iterator" in returned
        assert is_list or name == "acting_for" or inspect.iscoroutinefunction(method), face


def test_a_limited_app_asks_no_more_than_it_may() -> None:
    """Its methods that ask the API would have the rights of the app's own code."""
    limited = App().limit(lambda _: None)
    with pytest.raises(Forbidden):
        limited.explain("t")
