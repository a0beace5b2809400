"""Each kind of action in a browser: with script, and some without. `tests/doors` has who may do what."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from tests.dashboard.browser.conftest import Site, Visitor
from tests.harness import wait_until

from cloudsched.web.auth.roles import Role


@dataclass(frozen=True)
class Subject:
    """The task on which an action is tried, which no other test knows."""

    task: str
    execution: str = ""
    message: str = ""

    def fill(self, text: str) -> str:
        """Return an address or a value with this task's ids."""
        return text.format(task=self.task, execution=self.execution)


def run_first(site: Site, subject: Subject) -> Subject:
    """Run the task once, and wait until that has ended, or waits for an event."""
    site.call("POST", f"/v1/tasks/{subject.task}/trigger")
    path = f"/v1/tasks/{subject.task}/executions"
    wait_until(
        lambda: {"FAILED", "SUCCEEDED", "SUSPENDED"} & {each["status"] for each in site.call("GET", path)["executions"]}
    )
    return Subject(subject.task, site.call("GET", path)["executions"][0]["id"])


def deliver_first(site: Site, subject: Subject) -> Subject:
    """Let the task's result arrive in its owner's inbox."""

    def find() -> list[str]:
        messages = site.call("GET", "/v1/inboxes/ada/messages?pageSize=100")["messages"]
        return [each["id"] for each in messages if each["taskId"] == subject.task]

    ran = run_first(site, subject)
    wait_until(find)
    return replace(ran, message=find()[0])


def pause_first(site: Site, subject: Subject) -> Subject:
    site.call("POST", f"/v1/tasks/{subject.task}/pause")
    return subject


def find_task(field: str) -> Callable[[Site, Subject], object]:
    """Return what reads a field of the task, None if there is none any more."""
    return lambda site, subject: next((each[field] for each in site.list_tasks() if each["id"] == subject.task), None)


def count_executions(site: Site, subject: Subject) -> int:
    """Return how often the task has run."""
    return len(site.call("GET", f"/v1/tasks/{subject.task}/executions")["executions"])


def count_attempts(site: Site, subject: Subject) -> int:
    """Return how often the execution was tried."""
    execution = site.call("GET", f"/v1/tasks/{subject.task}/executions/{subject.execution}")
    return 0 if execution["status"] == "RUNNING" else len(execution["attempts"])


def find_outcome(site: Site, subject: Subject) -> object:
    return site.call("GET", f"/v1/tasks/{subject.task}/executions/{subject.execution}")["status"]


def is_made(site: Site, subject: Subject) -> bool:
    """Return whether there is a task with the title that was typed."""
    return subject.fill("Made {task}") in {each["title"] for each in site.list_tasks()}


def is_read(site: Site, subject: Subject) -> bool:
    """Return whether the message is marked as read."""
    messages = site.call("GET", "/v1/inboxes/ada/messages?pageSize=100")["messages"]
    return any(each["id"] == subject.message and each.get("isRead") for each in messages)


@dataclass(frozen=True)
class Action:
    """Something that can be done: where it is offered, what its button says, and what it changes."""

    name: str
    path: str
    button: str
    find: Callable[[Site, Subject], object]
    after: object
    """What is found once it is done."""
    typed: dict[str, str] = field(default_factory=dict)
    """What has to be typed before, by the label of the field."""
    prepare: Callable[[Site, Subject], Subject] = lambda _, subject: subject
    handler: str = "memo"
    row: str = ""
    """What stands in the row of the button, if there are several."""
    unfold: str = ""
    """What has to be unfolded to see the button."""


TASK, EXECUTION, BULK = "tasks/{task}", "tasks/{task}/executions/{execution}", "tasks?label=case%3D{task}"
TITLES = {"Title": "Made {task}", "When: words, cron, an instant, a duration or a rule": "every day at 9"}
FAILED = {"handler": "fragile", "prepare": run_first}
ACTIONS = (
    Action("pause", TASK, "Pause the task", find_task("status"), "PAUSED"),
    Action("trigger", TASK, "Run it now", count_executions, 1, unfold="Run now…"),
    Action("delete", TASK, "Delete the task and its runs", find_task("status"), None, unfold="Cancel or delete…"),
    Action("retry", EXECUTION, "Retry this run", count_attempts, 2, **FAILED, unfold="Retry…"),  # type: ignore[arg-type]
    Action("undo", "tasks/{task}?done=pause", "Undo", find_task("status"), "ACTIVE", prepare=pause_first),
    Action("list-pause", BULK, "Pause", find_task("status"), "PAUSED", row="{task}"),
    Action(
        "send-awaited",
        "tasks/{task}/events/approved",
        "Send approved",
        find_outcome,
        "SUCCEEDED",
        handler="asks",
        prepare=run_first,
    ),
    Action(
        "cancel-run",
        EXECUTION,
        "Cancel this run",
        find_outcome,
        "CANCELLED",
        handler="asks",
        prepare=run_first,
        unfold="Cancel this run…",
    ),
    Action("create", "new?handler=memo", "Create the task", is_made, after=True, typed=TITLES),
    Action("edit", "tasks/{task}/edit", "Save the task", find_task("title"), "Renamed", typed={"Title": "Renamed"}),
    Action("run", "tasks/{task}/run", "Run it once", count_executions, 1),
    Action("read", "deliveries?owner=ada", "Mark as read", is_read, after=True, prepare=deliver_first, row="{task}"),
    Action("bulk-pause", BULK, "Pause…", find_task("status"), "PAUSED"),
    Action("bulk-delete", BULK, "Delete…", find_task("status"), None),
)
PLAIN = tuple(each for each in ACTIONS if each.name in {"create", "edit", "bulk-pause", "read"})
"""Actions that a user's browser does without script: by each kind of form."""


def prepare(site: Site, action: Action, name: str) -> Subject:
    """Create a task for this test alone, with a label of its own, and do what has to come first."""
    task = f"act-{action.name}-{name}".lower()
    fields = {"labels": [f"case={task}"], "handler": action.handler}
    site.create(task, **fields, **({"deliveryChannels": ["WEB"]} if action.name == "read" else {}))
    return action.prepare(site, Subject(task))


@pytest.mark.parametrize(
    ("action", "role"),
    [*((each, Role.ADMIN) for each in ACTIONS), *((each, Role.USER) for each in PLAIN)],
    ids=lambda value: getattr(value, "name", value).lower(),
)
def test_who_may_act_does(tour: Visitor, site: Site, action: Action, role: Role) -> None:
    """The button does what it says, and the page says that it is done: as an admin with script, as a user without."""
    subject = prepare(site, action, role.value)
    page = tour.go(subject.fill(action.path), role, script=role is Role.ADMIN)
    if action.unfold:
        page.get_by_text(subject.fill(action.unfold)).click()
    for label, text in action.typed.items():
        page.get_by_label(label, exact=True).fill(subject.fill(text))
    place = page.get_by_role("row").filter(has_text=subject.fill(action.row)) if action.row else page
    place.get_by_role("button", name=subject.fill(action.button), exact=not action.row).click()
    if action.name.startswith("bulk-"):
        page.get_by_role("heading", name=re.compile("1 task")).wait_for()
        if action.name == "bulk-delete":
            page.get_by_label("Type the number").fill("1")
        page.get_by_role("button", name=re.compile("1 task")).click()
    if action.name.startswith("bulk-"):  # the page of an action says how far it is, in place of "Started."
        page.wait_for_url(re.compile(r"/actions/"))
    else:
        page.locator("main .note[role=status]").wait_for()
    wait_until(lambda: action.find(site, subject) == action.after)


def test_home_leads_to_the_retry_which_asks_before(tour: Visitor, site: Site) -> None:
    """The button that asks stays under the pointer; until the question is answered nothing is done."""
    action = next(each for each in ACTIONS if each.name == "retry")
    subject = prepare(site, action, "asked")
    page = tour.go("", clock=True)
    page.get_by_role("listitem").filter(has_text=subject.task).get_by_role("link", name="Retry…").click()
    row = page.get_by_role("main")
    asks, button = row.locator("summary", has_text="Retry…"), row.get_by_role("button", name=action.button)
    place = asks.bounding_box()
    asks.click()
    button.wait_for()
    assert asks.bounding_box() == place
    assert row.get_by_text("It gets one more attempt.").is_visible()
    asks.press("Enter")
    button.wait_for(state="hidden")
    assert action.find(site, subject) == 1
