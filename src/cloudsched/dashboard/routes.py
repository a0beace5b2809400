"""The addresses of the views, the top bar, and the messages after a verb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from werkzeug.routing import Map, Rule

from cloudsched.dashboard import (
    bulk_view,
    calendar_view,
    deliveries_view,
    execution_view,
    home_view,
    queues_view,
    runs_view,
    task_form,
    task_view,
    tasks_view,
    usage_view,
)
from cloudsched.domain.transitions.allowed_verbs import Verb

if TYPE_CHECKING:
    from cloudsched.dashboard.forms import Again, Done
    from cloudsched.dashboard.visit import Json, Visit

DONE: Final = {
    "pause": "Paused.",
    "resume": "Resumed.",
    "cancel": "Cancelled.",
    "trigger": "It runs now.",
    "snooze": "Snoozed for ten minutes.",
    "retry": "It is retried.",
    "send": "Sent.",
    "read": "Marked as read.",
    "delete": "Deleted.",
    "create": "Created.",
    "edit": "Saved.",
    "same": "Nothing was changed.",
    "bulk": "Started. This task does it, and shows how far it is.",
    "retries": "Started. This task retries them, and shows how far it is. Cancel it to leave the rest.",
    "clock": "The clock was moved.",
}
"""The message after a verb. The address only names the verb, so nobody can make a link with another message."""


UNDONE_BY: Final[dict[str, str]] = {Verb.PAUSE: Verb.RESUME, Verb.RESUME: Verb.PAUSE}
"""The verb that takes back another one."""


@dataclass(frozen=True, slots=True)
class View:
    """A view: its requests to the API, and its page of the answers."""

    fetch: Callable[..., Json]
    build: Callable[[Json, Visit], Any]
    template: str
    tab: str
    """The name of the view in the top bar that it belongs to."""
    title: Callable[[Any], str]
    send: Callable[..., Done | Again] | None = None
    """Carries out the view's form. None if it has none."""
    is_form: bool = False
    """True if the view is a form. Only those who may change something see it, and it does not change by itself."""
    is_live: bool = True
    """True if it changes by itself. Usage does not, because each look sums up the changes, at a read for each task."""


def _make_form(
    fetch: Callable[..., Json],
    build: Callable[[Json, Visit], Any],
    send: Callable[..., Done | Again],
    template: str,
    tab: str = "Tasks",
) -> View:
    return View(fetch, build, template, tab, lambda page: page.title, send, is_form=True)


VIEWS: Final = {
    "home": View(home_view.fetch, home_view.build, "home.html", "Home", lambda _: "Home"),
    "calendar": View(calendar_view.fetch, calendar_view.build, "calendar.html", "Calendar", lambda _: "Calendar"),
    "queues": View(queues_view.fetch, queues_view.build, "queues.html", "Queues", lambda _: "Queues"),
    "locks": View(queues_view.fetch_locks, queues_view.build_locks, "locks.html", "Locks", lambda _: "Locks"),
    "outbox": View(
        deliveries_view.fetch, deliveries_view.build, "outbox.html", "Outbox", lambda _: "Outbox", deliveries_view.send
    ),
    "person": View(
        deliveries_view.fetch_person, deliveries_view.build_person, "person.html", "Outbox", lambda page: page.name
    ),
    "usage": View(usage_view.fetch, usage_view.build, "usage.html", "Usage", lambda _: "Usage", is_live=False),
    "tasks": View(tasks_view.fetch, tasks_view.build, "tasks.html", "Tasks", lambda _: "Tasks"),
    "runs": View(runs_view.fetch, runs_view.build, "runs.html", "Runs", lambda _: "Runs"),
    "retry": _make_form(bulk_view.fetch_retry, bulk_view.build_retry, bulk_view.send_retry, "retry.html", tab="Runs"),
    "new": _make_form(task_form.fetch_new, task_form.build, task_form.send_new, "task_form.html"),
    "edit": _make_form(task_form.fetch_edit, task_form.build, task_form.send_edit, "task_form.html"),
    "bulk": _make_form(bulk_view.fetch, bulk_view.build, bulk_view.send, "bulk.html"),
    "run": _make_form(task_form.fetch_run, task_form.build_run, task_form.send_run, "run.html"),
    "answer": _make_form(task_form.fetch_run, task_form.build_run, task_form.send_run, "run.html"),
    "task": View(task_view.fetch, task_view.build, "task.html", "Tasks", lambda page: page.title),
    "execution": View(
        execution_view.fetch,
        execution_view.build,
        "execution.html",
        "Tasks",
        lambda page: f"{page.task_title}, {page.at.text}",
    ),
}
TABS: Final = {
    "Home": ("", "h"),
    "Tasks": ("tasks", "t"),
    "Runs": ("runs", "r"),
    "Calendar": ("calendar", "c"),
    "Queues": ("queues", "q"),
    "Locks": ("locks", "l"),
    "Outbox": ("outbox", "o"),
    "Usage": ("usage", "u"),
}
"""The views in the top bar: their paths, and the key after ``g`` that leads there."""
NEW_FORM: Final = {"task_id": "new"}
"""The arguments of `tasks/new`: the task `new` if it exists, or else the form for a new one, which is at `new`."""
MAP: Final = Map(
    [
        Rule("/", endpoint="home"),
        *(
            Rule(f"/{name}", endpoint=name)
            for name in ("tasks", "runs", "calendar", "queues", "locks", "outbox", "usage")
        ),
        Rule("/new", endpoint="new"),
        Rule("/bulk", endpoint="bulk"),
        Rule("/retry", endpoint="retry"),
        Rule("/people/<owner>", endpoint="person"),
        Rule("/tasks/<task_id>", endpoint="task"),
        Rule("/tasks/<task_id>/edit", endpoint="edit"),
        Rule("/tasks/<task_id>/run", endpoint="run"),
        Rule("/tasks/<task_id>/events/<event>", endpoint="answer"),
        Rule("/tasks/<task_id>/executions/<execution_id>", endpoint="execution"),
        Rule("/tasks/<task_id>/executions/<execution_id>/result.json", endpoint="result"),
        Rule("/tasks/<task_id>/executions/<execution_id>/payload.json", endpoint="payload"),
        Rule("/tasks/<task_id>/verbs/<verb>", endpoint="verb", methods=["POST"]),
        Rule("/<any(tasks, runs):name>.<any(csv, json):kind>", endpoint="export"),
        Rule("/changes", endpoint="changes"),
        Rule("/static/<name>", endpoint="static"),
    ],
    strict_slashes=False,
    merge_slashes=False,
    redirect_defaults=False,
)
