"""The handlers that come with a deployment, with `cloudsched dev` and with a new project are open to drafts."""

from __future__ import annotations

import runpy

import pytest
from tests.harness import ROOT

from cloudsched.testing import Simulation

SHIPPED = (
    "functions/handlers.py",
    "src/cloudsched/local/examples.py",
    "src/cloudsched/cli/project_templates/handlers.py.template",
)


@pytest.mark.parametrize("path", SHIPPED)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("every day at 9 remind me to stretch", "stretch"),
        ("Remind me to call mum every Sunday at 18:00", "call mum"),
        ("erinnere mich jeden Montag um 8 an die Miete", "Miete"),
    ],
)
def test_a_sentence_becomes_a_reminder(path: str, text: str, said: str) -> None:
    """With its words as the payload, so nobody is asked for a handler that is not there."""
    with Simulation(runpy.run_path(str(ROOT / path))["app"]) as sim:
        draft = sim.app.draft(text, timezone="Europe/Paris", owner="ada")
        assert not draft.missing
        assert draft.task is not None
        assert (draft.task["handler"], said in draft.task["payload"]["text"]) == ("remind", True)
