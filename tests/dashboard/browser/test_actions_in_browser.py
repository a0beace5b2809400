"""Each action of the page in a browser: with script, and some without. `test_roles_at_forms` has who may do it."""

from __future__ import annotations

import re

import pytest
from tests.dashboard.browser.actions import ACTIONS, Action, Subject
from tests.dashboard.browser.conftest import Site, Visitor
from tests.harness import wait_until

from cloudsched.web.auth.roles import Role

PLAIN = tuple(each for each in ACTIONS if each.name in {"create", "edit", "bulk-pause", "read"})
"""Actions that a user's browser does without script: by each kind of form."""


def prepare(site: Site, action: Action, name: str, role: Role) -> Subject:
    """Create a task for this test alone, with a label of its own, and do what has to come first."""
    task = f"act-{action.name}-{name}".lower()
    fields = {"labels": [f"case={task}"], "handler": action.handler, **action.fields}
    site.create(task, **fields, **({"deliveryChannels": ["WEB"]} if action.name == "read" else {}))
    return action.prepare(site, Subject(task), role)


@pytest.mark.parametrize(
    ("action", "role"),
    [*((each, Role.ADMIN) for each in ACTIONS), *((each, Role.USER) for each in PLAIN)],
    ids=lambda value: getattr(value, "name", value).lower(),
)
def test_who_may_act_does(tour: Visitor, site: Site, action: Action, role: Role) -> None:
    """The button does what it says, and the page says that it is done: as an admin with script, as a user without."""
    subject = prepare(site, action, role.value, role)
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
    page.locator("main .note[role=status]").wait_for()
    wait_until(lambda: action.find(site, subject) == action.after)


def test_home_asks_before_it_retries(tour: Visitor, site: Site) -> None:
    """The button that asks stays under the pointer; until the question is answered nothing is done."""
    action = next(each for each in ACTIONS if each.name == "home-retry")
    subject = prepare(site, action, "asked", Role.ADMIN)
    page = tour.go("", clock=True)
    row = page.get_by_role("listitem").filter(has_text=subject.task)
    asks, button = row.locator("summary"), row.get_by_role("button", name=action.button)
    place = asks.bounding_box()
    asks.click()
    button.wait_for()
    assert asks.bounding_box() == place
    assert row.get_by_text("It gets one more attempt, at once.").is_visible()
    asks.press("Enter")
    button.wait_for(state="hidden")
    assert action.find(site, subject) == 1
