"""Scripts to try interpreters with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from cloudsched.engine.ports.interpreter import ScriptInput
from cloudsched.scripts.quickjs.interpreter import QuickJs

Json: TypeAlias = Any

NOW = datetime(2027, 1, 1, tzinfo=UTC)
TOOLS = ("lookup", "send-email")
OUTPUT = 64 * 1024
GENEROUS_SECONDS = 60.0
"""So many seconds that no script which ends uses them up, however slow and busy the machine is."""


def script_input(source: str, given: Json = None, seed: int = 7) -> ScriptInput:
    return ScriptInput(source=source, input=given, task={"id": "t", "owner": "ada"}, tools=TOOLS, seed=seed, now=NOW)


def limited_interpreter(seconds: float = 0.2) -> QuickJs:
    return QuickJs(memory=32 * 1024 * 1024, time=timedelta(seconds=seconds), output=OUTPUT)
