"""Values of context variables that hold within a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def bind(variable: ContextVar[T | None], value: T) -> Iterator[T]:
    """Give a variable a value for the ``with`` block, which gets that value."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)
