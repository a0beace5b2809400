"""The HTTP API from Python: ``from cloudsched.client import Client, AsyncClient``.

Needs the extra ``worker``, but no Google package. The views of its answers need no extra. May import errors and
the domain's documents, of which the API's answers consist.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cloudsched.config.imports import require_extra

if TYPE_CHECKING:
    from cloudsched.client.client import AsyncClient, Client
    from cloudsched.client.connection import RETRIES
from cloudsched.client.views import (
    CalendarView,
    ClaimView,
    Created,
    ExplanationView,
    FeedView,
    FindingView,
    HeartbeatResult,
    PersonView,
    ScriptView,
    TaskView,
    TreeView,
)

__all__ = [
    "RETRIES",
    "AsyncClient",
    "CalendarView",
    "ClaimView",
    "Client",
    "Created",
    "ExplanationView",
    "FeedView",
    "FindingView",
    "HeartbeatResult",
    "PersonView",
    "ScriptView",
    "TaskView",
    "TreeView",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the names have different types
    """Import the client on first use."""
    if name not in {"AsyncClient", "Client", "RETRIES"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with require_extra("cloudsched.client"):
        module = import_module(f"{__name__}.{'connection' if name == 'RETRIES' else 'client'}")
    return getattr(module, name)
