"""Instants to the second: a simulation's clock moves a little at each look."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence


def about(instants: datetime | Sequence[datetime]) -> Any:  # noqa: ANN401 - what pytest returns
    """Return what is equal to an instant, or to a list of them, to the second."""
    return pytest.approx(instants, abs=timedelta(seconds=1))
