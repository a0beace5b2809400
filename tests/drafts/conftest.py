"""Drafts of an app of their own, on a simulation."""

from __future__ import annotations

from typing import Any, Protocol

import pytest
from tests.drafts_app import make_app

from cloudsched import App
from cloudsched.domain.responses.api_responses import DraftResult
from cloudsched.testing import Simulation


class MakeDraft(Protocol):
    def __call__(self, text: str, **more: Any) -> DraftResult: ...


@pytest.fixture
def app() -> App:
    return make_app()


@pytest.fixture
def draft(sim: Simulation) -> MakeDraft:
    """Make a draft for ada, in Paris; the simulation begins on a Friday."""

    def make(text: str, **more: Any) -> DraftResult:
        return sim.app.draft(text, **{"timezone": "Europe/Paris", "owner": "ada", **more})

    return make
