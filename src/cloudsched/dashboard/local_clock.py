"""The clock of a local stack, as the page moves it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping


class LocalClock(Protocol):
    """A clock that can be frozen, resumed and moved ahead."""

    @property
    def mode(self) -> str:
        """Return whether the clock runs or is frozen, in a word."""
        ...

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        ...

    def move(self, command: dict[str, object]) -> dict[str, object]:
        """Carry out a command of ``/dev/clock``. Return the clock's state."""
        ...


_COMMANDS: Final[dict[str, dict[str, object]]] = {
    "freeze": {"freeze": True},
    "resume": {"resume": True},
    "hour": {"advance": "PT1H"},
    "day": {"advance": "P1D"},
    "week": {"advance": "P7D"},
}


def move_clock(clock: LocalClock, form: Mapping[str, str]) -> None:
    """Carry out a form's command on the clock."""
    verb = form.get("verb", "")
    if verb == "to":
        clock.move({"advanceTo": _read_target(form.get("to", "")).isoformat()})
    elif verb in _COMMANDS:
        clock.move(_COMMANDS[verb])
    else:
        raise InvalidInput("", "A clock cannot do that.", "Choose a button of the page.")


def _read_target(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput("to", "is not an instant", "Write one with an offset.") from error
