"""The clock that the engine asks for the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime


class Clock(Protocol):
    """Where the present comes from."""

    def now(self) -> datetime:
        """Return the present instant, aware and in UTC."""
        ...
