"""Each action of the page, as each role, in a browser with and without script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import requests
from tests.dashboard.browser.actions import ACTIONS, Action, Subject
from tests.harness import wait_until

from cloudsched.web.auth.roles import Role

if TYPE_CHECKING:
    from tests.dashboard.browser.conftest import Site, Visitor

MAY_LOOK = (Role.VIEWER, Role.READER)
ALONE = ("tasks/", "new")
"""How the address of a page begins that is about one task."""
PLAIN = tuple({(each.path, each.forced == "bulk"): each for each in reversed(ACTIONS)}.values())
"""One action of each page: a user's browser without script does it."""


def prepare(site: Site, action: Action, name: str, role: Role) -> Subject:
    """Create a task for this test alone, with a label of its own, and do what has to come first."""
    task = f"act-{action.name}-{name}".lower()
    fields = {"labels": [f"case={task}"], "handler": action.handler, **action.fields}
    site.create(task, **fields, **({"deliveryChannels": ["WEB"]} if action.name == "read" else {}))
    return action.prepare(site, Subject(task), role)


def send(site: Site, action: Action, subject: Subject, role: Role) -> requests.Response:
    """Send an action's form, whether it is offered or not."""
    form = {name: subject.fill(text) if text != "{}" else text for name, text in action.form.items()}
    mount = site.pages[role]
    url = mount + subject.fill(action.forced or action.path)
    return requests.post(url, data=form, headers={"Origin": mount[:-1]}, timeout=60)


def list_forms(site: Site, action: Action, subject: Subject, role: Role) -> list[str]:
    """Return the forms with an action's button, of its own task if the page shows several."""
    shown = requests.get(site.pages[role] + subject.fill(action.path), timeout=60)
    is_own = re.compile("" if action.path.startswith(ALONE) else rf"{subject.task}|{subject.message or subject.task}")
    forms = re.findall(r"<form .*?</form>", shown.text, re.DOTALL)
    button = subject.fill(action.button)
    return [each for each in forms if button in re.sub(r"<[^>]*>", "", each) and is_own.search(each)]


@pytest.mark.parametrize(
    ("action", "role"),
    [*((each, Role.ADMIN) for each in ACTIONS), *((each, Role.USER) for each in PLAIN)],
    ids=lambda value: getattr(value, "name", value).lower(),
)
def test_who_may_act_does(tour: Visitor, site: Site, action: Action, role: Role) -> None:
    """The button does what it says, and the page says that it is done: as an admin with script, as a user without.

    A user's browser does one action of each page: the test below shows that the other forms are those of an admin.
    """
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


@pytest.mark.parametrize("action", [each for each in ACTIONS if each not in PLAIN], ids=lambda action: action.name)
def test_a_user_is_offered_what_an_admin_is(site: Site, action: Action) -> None:
    """The form behind each button is, byte for byte, the one that does its work for an admin."""
    subject = prepare(site, action, "offered", Role.USER)
    forms = list_forms(site, action, subject, Role.USER)
    assert forms
    assert set(forms) <= set(list_forms(site, action, subject, Role.ADMIN))


@pytest.mark.parametrize("role", MAY_LOOK)
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_who_may_only_look_is_offered_nothing_and_refused(site: Site, action: Action, role: Role) -> None:
    """No action is drawn, no form for one is shown; asked for all the same, it is refused and changes nothing."""
    subject = prepare(site, action, role.value, role)
    before = action.find(site, subject)
    answer = send(site, action, subject, role)
    assert answer.status_code == 403, answer.text
    shown = requests.get(site.pages[role] + subject.fill(action.path), timeout=60)
    assert shown.status_code == (403 if action.name in {"create", "edit", "run"} else 200)
    text = re.sub(r"<[^>]*>", "", shown.text)
    assert re.search(rf"\b{re.escape(subject.fill(action.button))}(?![\w])", text) is None
    own = re.sub(r'<form[^>]*/views".*?</form>', "", shown.text)  # what their browser keeps is theirs
    assert 'method="post"' not in own
    assert not action.unfold or subject.fill(action.unfold) not in text
    assert action.find(site, subject) == before


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_what_is_forced_on_others_would_do_its_work(site: Site, action: Action) -> None:
    """The forms of the test above are refused for the role alone: sent as an admin's, each does its work."""
    subject = prepare(site, action, "forced", Role.ADMIN)
    answer = send(site, action, subject, Role.ADMIN)
    assert answer.status_code == 200, answer.text
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
