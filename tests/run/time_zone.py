"""A test leaves the process in the time zone that it found it in: others, and the libraries they use, ask for it."""

from __future__ import annotations

import time

import pytest

USUAL = time.tzname


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Fail the test that changed the zone, and change it back."""
    found = time.tzname
    if found != USUAL:
        time.tzset()
        pytest.fail(f"It left the process in the time zone {found[0]}: call time.tzset() when TZ is as it was")
