"""The addresses of the views, the top bar, and the messages after a verb."""

from __future__ import annotations

from typing import Final

from werkzeug.routing import Map, Rule

from cloudsched.dashboard.downloads import FILES
from cloudsched.dashboard.forms import run_form, take_back, task_form
from cloudsched.dashboard.offered_verbs import RESUMED_IN_VAIN
from cloudsched.dashboard.view import View
from cloudsched.dashboard.views import (
    actions,
    audit,
    bulk,
    calendar,
    decisions,
    execution,
    home,
    queues,
    runs,
    task,
    tasks,
    usage,
)
from cloudsched.domain.documents.verbs import Verb
from cloudsched.features.table import FEATURES, find_place

DONE: Final = {
    **{verb.word: verb.traits.done for verb in Verb},
    RESUMED_IN_VAIN: "Resumed, but its budget or limit is used up, so it will be paused again.",
    "read": "Marked as read.",
    "resent": "Being sent again.",
    "create": "Created.",
    "same": "Nothing was changed.",
    "taken-back": "Taken back.",
    "bulk": "Started.",
    "stopped": "Stopped. Tasks it had not reached yet are unchanged.",
    "budget": "The budget is set.",
    "clock": "The clock was moved.",
    "approve": "Answered: approved.",
    "reject": "Answered: rejected.",
    "verified": "Verified. Earlier results that were not sent can be sent again.",
    "asked": "Confirmation requested. It counts as verified once somebody there confirms it.",
    "queue-paused": "Paused. The queue holds its dispatches until you resume it.",
    "queue-running": "Resumed. The queue delivers again.",
}
"""The message after a verb. The address only names the verb, so nobody can make a link with another message."""

UNDONE_BY: Final[dict[str, str]] = {Verb.PAUSE: Verb.RESUME, Verb.RESUME: Verb.PAUSE, RESUMED_IN_VAIN: Verb.PAUSE}
"""The verb that takes back another one."""

_TASK: Final = "/tasks/<task_id>"
_EXECUTION: Final = f"{_TASK}/executions/<execution_id>"
VIEWS: Final[dict[str, View]] = {
    "home": View("/", home.fetch, home.build, "home.html", "Home", key="h"),
    "tasks": View(
        "/tasks",
        tasks.fetch,
        tasks.build,
        "tasks.html",
        "Tasks",
        key="t",
        list_rows=tasks.list_rows,
        parameters=tasks.PARAMETERS,
    ),
    "runs": View(
        "/runs",
        runs.fetch,
        runs.build,
        "runs.html",
        "Runs",
        key="r",
        list_rows=runs.list_rows,
        parameters=runs.PARAMETERS,
    ),
    "calendar": View(
        "/calendar",
        calendar.fetch,
        calendar.build,
        "calendar.html",
        "Calendar",
        key="c",
        parameters=calendar.PARAMETERS,
    ),
    "due": View(
        "/due",
        calendar.fetch_rows,
        calendar.build_rows,
        "due.html",
        "Calendar",
        list_rows=calendar.list_due,
        parameters=calendar.DUE_PARAMETERS,
    ),
    "queues": View(
        "/queues",
        queues.fetch,
        queues.build,
        "queues.html",
        "Queues",
        queues.send,
        key="q",
        parameters=("queue", "page"),
    ),
    **{name: view for row in FEATURES if row.pages for name, view in find_place(row.pages).items()},
    "decisions": View(
        "/decisions", decisions.fetch, decisions.build, "decisions.html", "Home", decisions.send, parameters=("owner",)
    ),
    "usage": View(
        "/usage",
        usage.fetch,
        usage.build,
        "usage.html",
        "Usage",
        usage.send,
        key="u",
        is_live=False,
        list_rows=usage.list_rows,
        parameters=usage.PARAMETERS,
    ),
    "audit": View(
        "/audit",
        audit.fetch,
        audit.build,
        "audit.html",
        "Changes",
        key="a",
        list_rows=audit.list_rows,
        parameters=audit.PARAMETERS,
    ),
    "search": View(
        "/search", tasks.fetch_found, tasks.build_found, "search.html", "Search", is_live=False, parameters=("q",)
    ),
    "retry": View(
        "/retry",
        bulk.fetch_retry,
        bulk.build,
        "bulk.html",
        "Runs",
        bulk.send_retry,
        is_form=True,
        parameters=bulk.RETRY_PARAMETERS,
    ),
    "bulk": View(
        "/bulk", bulk.fetch, bulk.build, "bulk.html", "Tasks", bulk.send, is_form=True, parameters=bulk.PARAMETERS
    ),
    "actions": View("/actions", actions.fetch_list, actions.build_list, "actions.html", "Tasks", parameters=("page",)),
    "action": View("/actions/<action_id>", actions.fetch, actions.build, "action.html", "Tasks", actions.send),
    "new": View(
        "/new",
        task_form.fetch_new,
        task_form.build,
        "task_form.html",
        "Tasks",
        task_form.send_new,
        is_form=True,
        parameters=("handler",),
    ),
    "edit": View(
        f"{_TASK}/edit",
        task_form.fetch_edit,
        task_form.build,
        "task_form.html",
        "Tasks",
        task_form.send_edit,
        is_form=True,
    ),
    "back": View(
        f"{_TASK}/back/<int:number>",
        take_back.fetch,
        take_back.build,
        "take_back.html",
        "Tasks",
        take_back.send,
        is_form=True,
    ),
    "run": View(f"{_TASK}/run", run_form.fetch, run_form.build, "run.html", "Tasks", run_form.send, is_form=True),
    "answer": View(
        f"{_TASK}/events/<event>",
        run_form.fetch,
        run_form.build,
        "run.html",
        "Tasks",
        run_form.send,
        is_form=True,
        parameters=("executionId",),
    ),
    "task": View(_TASK, task.fetch, task.build, "task.html", "Tasks", parameters=task.PARAMETERS),
    "compare": View(
        f"{_EXECUTION}/compare",
        execution.fetch_comparison,
        execution.build_comparison,
        "compare.html",
        "Tasks",
        is_live=False,
        parameters=("with",),
    ),
    "execution": View(
        _EXECUTION,
        execution.fetch,
        execution.build,
        "execution.html",
        "Tasks",
        parameters=("step", "row"),
    ),
}
TABS: Final = {view.tab: (view.path.lstrip("/"), view.key) for view in VIEWS.values() if view.key}
"""The views in the top bar: their paths, and the key after ``g`` that leads there."""
MAP: Final = Map(
    [
        *(
            Rule(view.path, endpoint=name, methods=["GET", "POST"] if view.send else ["GET"])
            for name, view in VIEWS.items()
        ),
        Rule("/", endpoint="clock", methods=["POST"]),
        *(Rule(f"{_EXECUTION}/{name}.json", endpoint=name, methods=["GET"]) for name in FILES),
        Rule(f"{_TASK}/verbs/<verb>", endpoint="verb", methods=["POST"]),
        *(
            Rule(f"{view.path}.csv", endpoint="export", methods=["GET"], defaults={"name": name})
            for name, view in VIEWS.items()
            if view.list_rows
        ),
        Rule("/changes", endpoint="changes", methods=["GET"]),
        Rule("/static/<path:name>", endpoint="static", methods=["GET"]),
    ],
    strict_slashes=False,
    merge_slashes=False,
    redirect_defaults=False,
)
