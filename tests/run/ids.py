"""Ids that code draws in a test are the same in each run: what depends on their order fails always, or never.

They are drawn by the test's name, so tests that share a stack have different ones. They do not ascend: an order by id
is still not the order of creation.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from random import Random
from unittest import mock

import pytest


@contextmanager
def draw_ids(name: str) -> Iterator[None]:
    chance = Random(name)  # noqa: S311 - ids are to be repeatable

    def uuid4() -> uuid.UUID:
        return uuid.UUID(int=chance.getrandbits(128), version=4)

    def token_hex(nbytes: int | None = None) -> str:
        return chance.randbytes(secrets.DEFAULT_ENTROPY if nbytes is None else nbytes).hex()

    with mock.patch.object(uuid, "uuid4", uuid4), mock.patch.object(secrets, "token_hex", token_hex):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Draw the ids of one test, and of the fixtures that begin with it."""
    with draw_ids(item.nodeid):
        return (yield)
