"""The app for settings that are only checked once something uses them."""

from __future__ import annotations

import pytest
from tests import greeting_app

from cloudsched import App


@pytest.fixture
def app() -> App:
    """The app with the greeting handlers, in place of one without handlers."""
    return greeting_app.app
