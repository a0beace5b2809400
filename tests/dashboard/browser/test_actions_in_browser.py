"""Each action of the page, as each role, in a browser with and without script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import requests

from cloudsched.web.auth.roles import Role

if TYPE_CHECKING:
    from tests.dashboard.browser.conftest import Site, Visitor


@dataclass(frozen=True)
class Action:
    """Something that a role may do with a task."""

    verb: str
    button: str
    """What the button says."""
    status: str
    """The status that the task has afterwards; empty if it is gone."""
    before: str = ""
    """The verb that has to be carried out first."""
    unfold: str = ""
    """What has to be unfolded to see the button."""


ACTIONS = (
    Action("pause", "Pause the task", "PAUSED"),
    Action("resume", "Resume the task", "ACTIVE", before="pause"),
    Action("trigger", "Run now", "ACTIVE"),
    Action("cancel", "Cancel the task for good", "CANCELLED", unfold="Cancel or delete…"),
    Action("delete", "Delete the task and its executions", "", unfold="Cancel or delete…"),
)
"""The actions on a task's page. Add a new one here: it is tried as each role, with and without script."""
MAY_ACT, MAY_LOOK = (Role.ADMIN, Role.USER), (Role.VIEWER, Role.READER)


def prepare(site: Site, action: Action, name: str, role: Role = Role.ADMIN) -> str:
    """Create a task, and do as this role what has to come first: what another has paused, a user may not resume."""
    task = site.create(f"act-{action.verb}-{name}")
    if action.before:
        page = site.pages[role]
        url = f"{page}tasks/{task}/verbs/{action.before}"
        assert requests.post(url, headers={"Origin": page[:-1]}, timeout=60).ok
    return task


def find_status(site: Site, task: str) -> str:
    found = {each["id"]: each["status"] for each in site.call("GET", "/v1/tasks?pageSize=500")["tasks"]}
    return str(found.get(task, ""))


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "plain"])
@pytest.mark.parametrize("role", MAY_ACT)
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.verb)
def test_who_may_act_does(visitor: Visitor, site: Site, action: Action, role: Role, has_script: bool) -> None:  # noqa: FBT001
    """The button does what it says, and the page says that it is done."""
    task = prepare(site, action, f"{role.value}-{has_script}", role)
    page = visitor.open(f"tasks/{task}", role, java_script_enabled=has_script)
    if action.unfold:
        page.get_by_text(action.unfold).click()
    page.get_by_role("button", name=action.button).click()
    page.locator("main .note[role=status]").wait_for()
    assert find_status(site, task) == action.status


@pytest.mark.parametrize("role", MAY_LOOK)
def test_who_may_only_look_is_offered_nothing_and_refused(visitor: Visitor, site: Site, role: Role) -> None:
    """No action is drawn; asked for all the same, each is refused by the API and changes nothing."""
    for action in ACTIONS:
        task = prepare(site, action, role.value)
        before = find_status(site, task)
        url = f"{site.pages[role]}tasks/{task}"
        forced = requests.post(f"{url}/verbs/{action.verb}", headers={"Origin": site.pages[role][:-1]}, timeout=30)
        assert forced.status_code == 403
        assert find_status(site, task) == before
    page = visitor.open(f"tasks/{task}", role)
    for action in ACTIONS:
        assert page.get_by_role("button", name=action.button).count() == 0
