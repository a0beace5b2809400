"""The HTTP API from Python: ``from cloudsched.client import Client``.

Needs no Google package. May import the domain's documents, which the API's answers are made of, and errors.
"""

from cloudsched.client.client import Client
from cloudsched.client.connection import RETRIES
from cloudsched.client.views import Beat, ClaimView, Created, TaskView, TreeView

__all__ = ["RETRIES", "Beat", "ClaimView", "Client", "Created", "TaskView", "TreeView"]
