"""Agents: tools by which a language model schedules tasks, and handlers by which tasks wake an agent.

The command ``cloudsched mcp`` offers the tools over the Model Context Protocol, as a client of the HTTP API like any
other. `SchedulingTools` are the same tools as functions. Each framework has a module of its own, which only its users
import: ``adk``, ``openai_agents``, ``pydantic_ai`` and ``langgraph``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.agents.arguments import ToolRefused
    from cloudsched.agents.scheduling_tools import AgentCall, SchedulingTools, current_call

__all__ = ["AgentCall", "SchedulingTools", "ToolRefused", "current_call"]


def __getattr__(name: str) -> object:
    """Import a name when it is first used, since commands look at this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "arguments" if name == "ToolRefused" else "scheduling_tools"
    value = getattr(import_module(f"cloudsched.agents.{module}"), name)
    globals()[name] = value
    return value
