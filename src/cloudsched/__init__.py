"""Durable scheduled tasks for Google Cloud, with no server to keep and a clock that tests can move.

To read the code, read five files and have the whole: ``domain/task.py`` (what a task is), ``domain/planning.py`` (when
it runs, and what carries it there), ``engine/ports.py`` (what is needed from outside), ``engine/executor.py`` (what a
delivery does), ``app.py`` (how it is put together). Then ``domain/claiming.py`` and ``domain/finishing.py`` hold the
decisions, and ``errors.py`` all that can go wrong.
"""

from cloudsched.app import App
from cloudsched.config import Settings
from cloudsched.domain.drafts import TaskDraft
from cloudsched.domain.execution import Execution, ExecutionStatus
from cloudsched.domain.outcome import Cancel, Done, Fail, Retry, Snooze
from cloudsched.domain.policy import CatchUp, Overlap, RetryPolicy
from cloudsched.domain.schedule import Schedule
from cloudsched.domain.task import Task, TaskStatus
from cloudsched.engine.context import Context
from cloudsched.engine.ports import TaskQuery
from cloudsched.errors import CloudschedError

__all__ = [
    "App",
    "Cancel",
    "CatchUp",
    "CloudschedError",
    "Context",
    "Done",
    "Execution",
    "ExecutionStatus",
    "Fail",
    "Overlap",
    "Retry",
    "RetryPolicy",
    "Schedule",
    "Settings",
    "Snooze",
    "Task",
    "TaskDraft",
    "TaskQuery",
    "TaskStatus",
]
