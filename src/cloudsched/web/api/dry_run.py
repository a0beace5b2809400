"""``validateOnly``: run a change up to its commit, and answer with what would be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.app import App
from cloudsched.domain.transitions.planning import upcoming_occurrences
from cloudsched.engine.tasks.read_back import WouldCommit, make_dry_scheduler
from cloudsched.web.api.responses import (
    json_response,
    make_occurrence,
    show_receipt,
    task_to_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Response

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.authority import Authority
    from cloudsched.engine.tasks.scheduler import Scheduler
    from cloudsched.web.api.operation import ApiCall


PREVIEWED = 10
"""The number of occurrences in the answer."""


class _DryApp(App):
    """The app for one request that stores nothing."""

    def __init__(self, app: App, authority: Authority) -> None:
        self.container = app.container
        self._authority = authority
        self._dry_scheduler = make_dry_scheduler(app.container.engine)

    @property
    def _scheduler(self) -> Scheduler:
        return self._dry_scheduler


def validate_only(
    call: ApiCall,
    act: Callable[[App], Task],
    show: Callable[[Task], dict[str, Any]] = lambda _: {},
) -> Response:
    """Answer a change that is not stored: with its task, the next occurrences, and what `show` adds."""
    try:
        task = act(_DryApp(call.app, call.authority))
    except WouldCommit as stopped:
        task = stopped.task
    zone = task.timezone
    upcoming = [make_occurrence(at, zone).to_wire() for at in upcoming_occurrences(task, PREVIEWED)]
    content: dict[str, Any] = {**task_to_json(task), "upcoming": upcoming, **show_receipt(call.app, task), **show(task)}
    return json_response(content)
