"""What surrounds every view."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.dashboard.conftest import NOW, visit

from cloudsched.dashboard.application import Place, make_shell


@pytest.mark.parametrize(
    ("off", "is_local", "said"),
    [
        (timedelta(0), False, ""),
        (timedelta(seconds=5), False, ""),
        (timedelta(minutes=2), False, "This machine's clock is 2 min ahead"),
        (-timedelta(minutes=2), False, "This machine's clock is 2 min behind"),
        (timedelta(days=400), True, ""),
    ],
)
def test_a_clock_that_is_off_is_said(off: timedelta, is_local: bool, said: str) -> None:  # noqa: FBT001 - from the table
    """Beside a deployment, in the foot; the local stack's clock may be anywhere."""
    shell = make_shell(visit(is_local=is_local), Place("here", now=NOW + off), tab="Home", zone="UTC")
    assert shell.skew.replace("\N{NO-BREAK SPACE}", " ") == said
