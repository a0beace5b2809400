"""What becomes of a form that was sent: done, or shown again with what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Json


@dataclass(frozen=True, slots=True)
class Done:
    """It was done."""

    path: str
    """Where to go, below the mount."""
    said: str
    """What is said there: a name in `routes.DONE`."""


@dataclass(frozen=True, slots=True)
class Again:
    """The form is shown again, with what was typed."""

    answer: Json
    """What the view is built of."""
    status: int = 200
    """The status of the page: 200 for a check, the API's for a refusal."""
