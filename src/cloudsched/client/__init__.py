"""The HTTP API from Python: ``from cloudsched.client import Client, AsyncClient``.

Needs the extra ``worker``, but no Google package. May import errors and the domain's documents, of which the API's
answers consist.
"""

from cloudsched.config.imports import require_extra

with require_extra("cloudsched.client"):
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
