"""The HTTP API from Python: ``from cloudsched.client import Client, AsyncClient``.

Needs the extra ``worker``, but no Google package. May import the domain's documents, which the API's answers are made
of, and errors.
"""

from cloudsched.config.imports import require_extra

with require_extra("cloudsched.client", "worker"):
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
