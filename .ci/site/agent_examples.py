"""The tabs of docs/guides/agent-schedules.md, from the projects that ``cloudsched init --agent`` writes.

``python .ci/site/agent_examples.py`` writes them into the page.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from marks import put_parts, write

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "agent-schedules.md"
TEMPLATES = ROOT / "src" / "cloudsched" / "cli" / "project_templates" / "agents"
FRAMEWORKS = {
    "adk": "Google's ADK",
    "openai_agents": "OpenAI Agents SDK",
    "pydantic_ai": "Pydantic AI",
    "langgraph": "LangGraph",
}


def put(text: str) -> str:
    """Return the page with the examples as the templates have them."""
    return put_parts(text, {"agents": _write_tabs})


def _write_tabs(kind: str) -> str:
    prefix = "test_" if kind == "their tests" else ""
    tabs = [_write_tab(name, shown, f"{prefix}{name}", f"{prefix}handlers.py") for name, shown in FRAMEWORKS.items()]
    return "\n\n".join(tabs)


def _write_tab(framework: str, shown: str, template: str, file: str) -> str:
    code = (TEMPLATES / f"{template}.py.template").read_text("utf-8").strip()
    extra = framework.replace("_", "-")
    more = " and `langchain`" if framework == "langgraph" and file == "handlers.py" else ""
    install = "" if file != "handlers.py" else f"Install `cloudsched[{extra}]`{more}.\n\n"
    block = f"{install}```python\n# {file}\n{code}\n```"
    return f'=== "{shown}"\n\n{textwrap.indent(block, "    ")}'


if __name__ == "__main__":
    write(PAGE, put)
