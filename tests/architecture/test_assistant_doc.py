"""The Python of docs/how-to/assistant.md runs as it stands there, and its limits are those of the settings."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

from cloudsched.config.features import AssistantSettings
from cloudsched.config.variables import list_settings
from cloudsched.engine.assistant.brief import MAX_SHOWN, MAX_SHOWN_TOGETHER
from cloudsched.testing import Simulation

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "assistant.md").read_text("utf-8")
TOOLS, TASK, TEST = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_does_as_it_says() -> None:
    """A newcomer who copies the blocks gets the task, and a green test."""
    names: dict[str, Any] = {}
    exec(TOOLS, names)  # noqa: S102 - our own page
    exec(TEST, names)  # noqa: S102 - our own page
    names["test_ada_is_told_how_the_bikes_sell"]()
    with Simulation(names["app"], language_model=names["Model"](), assistant=AssistantSettings(is_on=True)) as sim:
        exec(TASK, names)  # noqa: S102 - our own page
        assert names["task"].schedule.describe() == "every Monday at 09:00, Europe/Paris"
        sim.advance(timedelta(days=4))
        assert sim.executions(names["task"].id)[0].chat_id == "chat-17"


def test_the_limits_are_those_of_the_settings() -> None:
    """With the defaults as they are declared."""
    declared = {about.variable: name for name, about in list_settings(AssistantSettings).items()}
    defaults = AssistantSettings()
    shown = {"TURNS": f"{defaults.turns}", "TOKENS": f"{defaults.tokens:,}"}
    shown["TIMEOUT_SECONDS"] = f"{defaults.timeout.total_seconds():g}"
    for name, text in shown.items():
        assert f"`CLOUDSCHED_ASSISTANT_{name}`, {text}" in PAGE
    assert set(re.findall(r"CLOUDSCHED_ASSISTANT\w*", PAGE)) == declared.keys()
    assert f"{MAX_SHOWN:,} bytes, and {MAX_SHOWN_TOGETHER:,} of all" in PAGE
