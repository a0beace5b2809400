"""Each action of the page: where it is offered, what its button says, and what it changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import requests
from tests.dashboard.browser.conftest import Site
from tests.dashboard.conftest import FIRST_STEPS
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
        return text.format(task=self.task, execution=self.execution, message=self.message)


@dataclass(frozen=True)
class Action:
    """Something that a role may do."""

    name: str
    path: str
    """Where it is offered, below the mount."""
    button: str
    """What the button says."""
    find: Callable[[Site, Subject], object]
    """What it changes."""
    after: object
    """What that is once it is done."""
    typed: dict[str, str] = field(default_factory=dict)
    """What has to be typed before, by the label of the field."""
    prepare: Callable[[Site, Subject, Role], Subject] = lambda _, subject, __: subject
    handler: str = "memo"
    row: str = ""
    """What stands in the row of the button, if there are several."""
    unfold: str = ""
    """What has to be unfolded to see the button."""
    fields: dict[str, object] = field(default_factory=dict)
    """What its task has beside a title, a handler and a label."""


def find_status(site: Site, subject: Subject) -> str:
    found = site.call("GET", "/v1/tasks?pageSize=500")["tasks"]
    return next((str(each["status"]) for each in found if each["id"] == subject.task), "")


def count_executions(site: Site, subject: Subject) -> int:
    return len(site.call("GET", f"/v1/tasks/{subject.task}/executions")["executions"])


def count_attempts(site: Site, subject: Subject) -> int:
    execution = site.call("GET", f"/v1/tasks/{subject.task}/executions/{subject.execution}")
    return 0 if execution["status"] == "RUNNING" else len(execution["attempts"])


def find_outcome(site: Site, subject: Subject) -> str:
    return str(site.call("GET", f"/v1/tasks/{subject.task}/executions/{subject.execution}")["status"])


def count_first_steps(site: Site, subject: Subject) -> int:
    return FIRST_STEPS[subject.task] if find_outcome(site, subject) == "FAILED" else 0


def find_title(site: Site, subject: Subject) -> str:
    return str(site.call("GET", f"/v1/tasks/{subject.task}")["title"])


def count_snoozes(site: Site, subject: Subject) -> int:
    return int("snoozedUntil" in site.call("GET", f"/v1/tasks/{subject.task}"))


def count_titled(words: str) -> Callable[[Site, Subject], int]:
    """Return what counts the tasks with this title."""

    def count(site: Site, subject: Subject) -> int:
        found = site.call("GET", "/v1/tasks?pageSize=500")["tasks"]
        return sum(each["title"] == subject.fill(words) for each in found)

    return count


def count_own_payloads(site: Site, subject: Subject) -> int:
    """Return how many triggers with a payload of their own the task's history has."""
    entries = site.call("GET", subject.fill("/v1/tasks/{task}/history"))["entries"]
    return sum(each.get("reason") == "With a payload of its own." for each in entries)


def is_read(site: Site, subject: Subject) -> bool:
    messages = site.call("GET", "/v1/inboxes/ada/messages?pageSize=100")["messages"]
    return any(each["id"] == subject.message and each.get("isRead") for each in messages)


def pause_first(site: Site, subject: Subject, role: Role) -> Subject:
    """Pause the task as this role, if it may: what another has paused, a user may not resume."""
    page = site.pages[role]
    url = f"{page}tasks/{subject.task}/verbs/pause"
    if not requests.post(url, headers={"Origin": page[:-1]}, timeout=60).ok:
        site.call("POST", f"/v1/tasks/{subject.task}/pause")
    return subject


def run_first(site: Site, subject: Subject, _: Role) -> Subject:
    """Run the task once, and wait until that has ended, or waits for an event."""
    site.call("POST", f"/v1/tasks/{subject.task}/trigger")
    path = f"/v1/tasks/{subject.task}/executions"
    wait_until(
        lambda: {"FAILED", "SUCCEEDED", "SUSPENDED"} & {each["status"] for each in site.call("GET", path)["executions"]}
    )
    return Subject(subject.task, site.call("GET", path)["executions"][0]["id"])


def deliver_first(site: Site, subject: Subject, role: Role) -> Subject:
    """Let the task's result arrive in its owner's inbox."""

    def find() -> list[str]:
        messages = site.call("GET", "/v1/inboxes/ada/messages?pageSize=100")["messages"]
        return [each["id"] for each in messages if each["taskId"] == subject.task]

    ran = run_first(site, subject, role)
    wait_until(find)
    return Subject(subject.task, ran.execution, find()[0])


TASK = "tasks/{task}"
EXECUTION = "tasks/{task}/executions/{execution}"
BULK = "tasks?label=case%3D{task}"
DAILY = {"rrule": "FREQ=DAILY", "dtstart": "2029-01-01T00:00:00", "timezone": "UTC"}
"""A task that fails once and for all has ended; only one that recurs is paused by failures."""


def choose(verb: str, button: str, after: str, **more: object) -> Action:
    """Return the change of all tasks with a label, of which there is one."""
    return Action(f"bulk-{verb}", BULK, button, find_status, after, **more)  # type: ignore[arg-type]


ACTIONS = (
    Action("pause", TASK, "Pause the task", find_status, "PAUSED"),
    Action("resume", TASK, "Resume the task", find_status, "ACTIVE", prepare=pause_first),
    Action("snooze", TASK, "Again in ten minutes", count_snoozes, 1, prepare=run_first),
    Action("trigger", TASK, "Run it now", count_executions, 1, unfold="Run now…"),
    Action("cancel", TASK, "Cancel the task for good", find_status, "CANCELLED", unfold="Cancel or delete…"),
    Action("delete", TASK, "Delete the task and its executions", find_status, "", unfold="Cancel or delete…"),
    Action(
        "retry-last",
        TASK,
        "Retry the last failed execution",
        count_attempts,
        2,
        handler="fragile",
        prepare=run_first,
        unfold="Retry…",
    ),
    Action(
        "retry",
        EXECUTION,
        "Retry this execution",
        count_attempts,
        2,
        handler="fragile",
        prepare=run_first,
        unfold="Retry…",
    ),
    Action(
        "retry-from-here",
        "tasks/{task}/executions/{execution}?step=1",
        "Retry from here",
        count_first_steps,
        2,
        handler="stepped",
        prepare=run_first,
    ),
    Action("undo", "tasks/{task}?done=pause", "Undo", find_status, "ACTIVE", prepare=pause_first),
    Action("list-pause", BULK, "Pause", find_status, "PAUSED", row="{task}"),
    Action("list-resume", BULK, "Resume", find_status, "ACTIVE", prepare=pause_first, row="{task}"),
    Action(
        "home-retry",
        "",
        "Retry this execution",
        count_attempts,
        2,
        handler="fragile",
        prepare=run_first,
        unfold="Retry… {task}",
    ),
    Action(
        "home-resume",
        "",
        "Resume the task",
        find_status,
        "ACTIVE",
        handler="fragile",
        prepare=run_first,
        unfold="Resume… {task}",
        fields={"pauseAfterFailures": 1, "schedule": DAILY},
    ),
    Action("send-awaited", TASK, "Send approved", find_outcome, "SUCCEEDED", handler="asks", prepare=run_first),
    Action(
        "send-to-execution",
        EXECUTION,
        "Send approved to this execution only",
        find_outcome,
        "SUCCEEDED",
        handler="asks",
        prepare=run_first,
    ),
    Action(
        "send",
        TASK,
        "Send the event",
        find_outcome,
        "SUCCEEDED",
        typed={"Event": "approved"},
        handler="asks",
        prepare=run_first,
        unfold="Send an event…",
    ),
    Action(
        "create",
        "new?handler=memo",
        "Create the task",
        count_titled("Made {task}"),
        1,
        typed={"Title": "Made {task}", "When: words, cron, an instant, a duration or a rule": "every day at 9"},
    ),
    Action("edit", "tasks/{task}/edit", "Save the task", find_title, "Renamed", typed={"Title": "Renamed"}),
    Action("run", "tasks/{task}/run", "Run it once, now", count_own_payloads, 1),
    Action("read", "outbox?owner=ada", "Mark as read", is_read, after=True, prepare=deliver_first, row="{task}"),
    choose("pause", "Pause…", "PAUSED"),
    choose("resume", "Resume…", "ACTIVE", prepare=pause_first),
    choose("cancel", "Cancel…", "CANCELLED"),
    choose("delete", "Delete…", ""),
    Action("bulk-retryFailed", BULK, "Retry failed…", count_attempts, 2, handler="fragile", prepare=run_first),
)
"""Add a new action here: a browser tries it. test_clock_in_browser has those of the clock."""
