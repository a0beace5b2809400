"""The HTTP API from Python: ``from cloudsched.client import Client``.

Needs no Google package. May import the domain's documents, which the API's answers are made of, and errors.
"""

from cloudsched.client.client import Client
from cloudsched.client.connection import RETRIES
from cloudsched.client.views import ClaimView, Created, HeartbeatResult, TaskView, TreeView

__all__ = ["RETRIES", "ClaimView", "Client", "Created", "HeartbeatResult", "TaskView", "TreeView"]
