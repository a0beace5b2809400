"""The addresses of the views, the top bar, and the messages after a verb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from werkzeug.routing import Map, Rule

from cloudsched.dashboard import (
    bulk_view,
    calendar_view,
    deliveries_view,
    execution_view,
    home_view,
    lists_view,
    task_form,
    task_view,
    usage_view,
)
from cloudsched.domain.documents.verbs import Verb

if TYPE_CHECKING:
    from cloudsched.dashboard.forms import Again, Done
    from cloudsched.dashboard.visit import Json, Visit

DONE: Final = {
    **{verb.word: verb.traits.done for verb in Verb},
    "read": "Marked as read.",
    "create": "Created.",
    "same": "Nothing was changed.",
    "bulk": "Started. This task does it, and shows how far it is.",
    "retries": "Started. This task retries them, and shows how far it is. Cancel it to leave the rest.",
    "clock": "The clock was moved.",
    "queue-paused": "Paused. The queue keeps its dispatches.",
    "queue-running": "Resumed. The queue delivers again.",
}
"""The message after a verb. The address only names the verb, so nobody can make a link with another message."""

UNDONE_BY: Final[dict[str, str]] = {Verb.PAUSE: Verb.RESUME, Verb.RESUME: Verb.PAUSE}
"""The verb that takes back another one."""


@dataclass(frozen=True, slots=True)
class View:
    """A view: its requests to the API, and what its template needs of the answers."""

    path: str
    fetch: Callable[..., Json]
    build: Callable[[Json, Visit], Json]
    """Returns what the template shows. A ``title`` in it is the page's, which otherwise is the tab's name."""
    template: str
    tab: str
    """The name of the view in the top bar that it belongs to."""
    send: Callable[..., Done | Again] | None = None
    """Carries out the view's form. None if it has none."""
    is_form: bool = False
    """True if the view is a form. Only those who may change something see it, and it does not change by itself."""
    is_live: bool = True
    """True if it changes by itself. Usage does not, because each look sums up the changes, at a read for each task."""


def _make_form(
    path: str,
    fetch: Callable[..., Json],
    build: Callable[[Json, Visit], Json],
    send: Callable[..., Done | Again],
    template: str,
    tab: str = "Tasks",
) -> View:
    return View(path, fetch, build, template, tab, send, is_form=True)


_TASK, _EXECUTION = "/tasks/<task_id>", "/tasks/<task_id>/executions/<execution_id>"
VIEWS: Final = {
    "home": View("/", home_view.fetch, home_view.build, "home.html", "Home"),
    "calendar": View("/calendar", calendar_view.fetch, calendar_view.build, "calendar.html", "Calendar"),
    "queues": View(
        "/queues", lists_view.fetch_queues, lists_view.build_queues, "queues.html", "Queues", lists_view.send_queues
    ),
    "locks": View("/locks", lists_view.fetch_locks, lists_view.build_locks, "locks.html", "Locks"),
    "deliveries": View(
        "/deliveries",
        deliveries_view.fetch,
        deliveries_view.build,
        "deliveries.html",
        "Deliveries",
        deliveries_view.send,
    ),
    "person": View(
        "/people/<owner>", deliveries_view.fetch_person, deliveries_view.build_person, "person.html", "Deliveries"
    ),
    "usage": View("/usage", usage_view.fetch, usage_view.build, "usage.html", "Usage", is_live=False),
    "tasks": View("/tasks", lists_view.fetch_tasks, lists_view.build_tasks, "tasks.html", "Tasks"),
    "runs": View("/runs", lists_view.fetch_runs, lists_view.build_runs, "runs.html", "Runs"),
    "retry": _make_form(
        "/retry", bulk_view.fetch_retry, bulk_view.build, bulk_view.send_retry, "bulk.html", tab="Runs"
    ),
    "bulk": _make_form("/bulk", bulk_view.fetch, bulk_view.build, bulk_view.send, "bulk.html"),
    "new": _make_form("/new", task_form.fetch_new, task_form.build, task_form.send_new, "task_form.html"),
    "edit": _make_form(f"{_TASK}/edit", task_form.fetch_edit, task_form.build, task_form.send_edit, "task_form.html"),
    "run": _make_form(f"{_TASK}/run", task_form.fetch_run, task_form.build_run, task_form.send_run, "run.html"),
    "answer": _make_form(
        f"{_TASK}/events/<event>", task_form.fetch_run, task_form.build_run, task_form.send_run, "run.html"
    ),
    "task": View(_TASK, task_view.fetch, task_view.build, "task.html", "Tasks"),
    "execution": View(_EXECUTION, execution_view.fetch, execution_view.build, "execution.html", "Tasks"),
}
TABS: Final = {
    "Home": ("", "h"),
    "Tasks": ("tasks", "t"),
    "Runs": ("runs", "r"),
    "Calendar": ("calendar", "c"),
    "Queues": ("queues", "q"),
    "Locks": ("locks", "l"),
    "Deliveries": ("deliveries", "d"),
    "Usage": ("usage", "u"),
}
"""The views in the top bar: their paths, and the key after ``g`` that leads there."""
MAP: Final = Map(
    [
        *(
            Rule(view.path, endpoint=name, methods=["GET", "POST"] if view.send or name == "home" else ["GET"])
            for name, view in VIEWS.items()
        ),
        Rule(f"{_EXECUTION}/result.json", endpoint="result", methods=["GET"]),
        Rule(f"{_EXECUTION}/payload.json", endpoint="payload", methods=["GET"]),
        Rule(f"{_TASK}/verbs/<verb>", endpoint="verb", methods=["POST"]),
        Rule("/<any(tasks, runs):name>.<any(csv, json):kind>", endpoint="export", methods=["GET"]),
        Rule("/changes", endpoint="changes", methods=["GET"]),
        Rule("/static/<name>", endpoint="static", methods=["GET"]),
    ],
    strict_slashes=False,
    merge_slashes=False,
    redirect_defaults=False,
)
