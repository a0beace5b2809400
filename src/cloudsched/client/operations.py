"""All operations of the API, as flows, and those that `App` shares with `Client`."""

from __future__ import annotations

from cloudsched.client.overview_operations import OverviewOperations
from cloudsched.client.record_operations import PeopleOperations, PersonOperations, RecordOperations
from cloudsched.client.task_inquiries import TaskInquiries
from cloudsched.client.task_operations import TaskOperations
from cloudsched.client.worker_operations import WorkerOperations


class SharedOperations(TaskInquiries, OverviewOperations, PeopleOperations, RecordOperations):
    """What apps and clients have alike: an app asks its own API, in its process."""


class Operations(SharedOperations, TaskOperations, PersonOperations, WorkerOperations):
    """All operations of the API."""
