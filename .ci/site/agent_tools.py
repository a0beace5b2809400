"""The table of tools in docs/guides/agents.md: ``python .ci/site/agent_tools.py`` writes it from the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from marks import write

from cloudsched.agents.tools import TOOLS

if TYPE_CHECKING:
    from cloudsched.agents.arguments import AgentTool

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "agents.md"
HEAD = "| tool | what it does | arguments | marked as |\n|---|---|---|---|\n"
TABLE = re.compile(f"{re.escape(HEAD)}(?:\\|.*\\n)*")


def put(text: str) -> str:
    """Return the page with the tools as the code has them."""
    rows = "".join(_show(name, each) for name, each in TOOLS.items())
    return TABLE.sub(lambda _: HEAD + rows, text)


def _show(name: str, tool: AgentTool) -> str:
    first = re.split(r"(?<=\.)\s", tool.description)[0]
    arguments = ", ".join(f"`{each}`" for each in tool.arguments.model_fields)
    hints = {"readOnlyHint": "reads", "destructiveHint": "destructive", "idempotentHint": "idempotent"}
    marks = [word for hint, word in hints.items() if tool.effects.to_annotations()[hint]]
    shown = "reads" if tool.effects.reads else ", ".join(marks)
    return f"| `{name}` | {first} | {arguments} | {shown} |\n"


if __name__ == "__main__":
    write(PAGE, put)
