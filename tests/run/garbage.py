"""What was loaded before the first test is never garbage: the collector does not look through it again and again.

Ten thousand tests and what they import are a large heap, and to look for cycles in it takes a tenth of the whole time.
"""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected; set aside what there is then."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
