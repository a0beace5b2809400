"""The local stack's clock, which Home can freeze, let run and move ahead."""

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
        """Carry out a command of ``/dev/clock``; return the clock's state.

        Raises:
            CloudschedError: The command is malformed, or the clock is being moved.
        """
        ...


_STEPS: Final = {"hour": "PT1H", "day": "P1D", "week": "P7D"}


def move(clock: LocalClock, form: Mapping[str, str]) -> None:
    """Do with the clock what a form asks for.

    Raises:
        InvalidInput: The form says nothing that the clock can do.
        CloudschedError: The clock refuses.
    """
    verb = form.get("verb", "")
    if verb in {"freeze", "resume"}:
        clock.move({verb: True})
    elif verb in _STEPS:
        clock.move({"advance": _STEPS[verb]})
    elif verb == "to":
        clock.move({"advanceTo": _read_target(form.get("to", "")).isoformat()})
    else:
        raise InvalidInput("verb", "is nothing that a clock can do", "Choose a button of the page.")


def _read_target(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput("to", "is not an instant", "Write one with an offset.") from error
