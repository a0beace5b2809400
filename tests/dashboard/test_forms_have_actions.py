"""Every form of the page that changes something is tried in a browser, or by a test that is named here."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cases import try_each
from tests.dashboard.browser.actions import ACTIONS, Action

import cloudsched.dashboard

TEMPLATES = Path(cloudsched.dashboard.__file__).parent / "templates"
TESTS = Path(__file__).parent
PAGES = {
    "": "home.html",
    "tasks": "tasks.html",
    "tasks/{}": "task.html",
    "tasks/{}/executions/{}": "execution.html",
    "tasks/{}/edit": "task_form.html",
    "tasks/{}/run": "run.html",
    "new": "task_form.html",
    "outbox": "outbox.html",
}
"""Which file shows an address."""
OTHERS = {
    ("home.html", ""): "browser/test_clock_in_browser.py::test_only_who_may_act_moves_the_clock",
    ("shell.html", "sign-out"): "browser/test_views_in_browser.py::test_the_form_for_a_key_is_fit_for_everybody",
    ("sign_in.html", "sign-in"): "browser/test_views_in_browser.py::test_the_form_for_a_key_is_fit_for_everybody",
    (
        "retry.html",
        "",
    ): "browser/test_errands_in_browser.py::test_what_failed_in_the_last_hour_is_retried_in_three_clicks",
    ("problem.html", ""): "test_problem_pages.py::test_a_form_that_did_not_arrive_can_be_sent_again",
}
"""The forms that are no action of a role on a task: where each is tried."""
Form = tuple[str, str, frozenset[str]]
"""A form: its file, where it is sent to (empty for its own address), and the fields that it sends."""


def list_forms() -> set[Form]:
    """Return the forms of all templates that are sent by POST."""
    found = set()
    for file in sorted(TEMPLATES.glob("*.html")):
        text = file.read_text("utf-8")
        for opening, body in re.findall(r'(<form [^>]*method="post"[^>]*>)(.*?)</form>', text, re.DOTALL):
            target = re.search(r'action="([^"]*)"', opening)
            if file.name != "parts.html":
                found.add((file.name, normalize(target[1]) if target else "", find_fields(body)))
        for verb in re.findall(r"p\.verb\(root, [a-z_.]+, '([a-z]+)'", text):
            found.add((file.name, f"tasks/{{}}/verbs/{verb}", frozenset()))
        if "p.retry(root, " in text:
            found.add((file.name, "tasks/{}/verbs/retry", frozenset({"executionId"})))
    return found


def find_fields(body: str) -> frozenset[str]:
    return frozenset(re.findall(r'(?:input|select|textarea)[^>]* name="([a-zA-Z]+)"', body)) - {"etag"}


def normalize(address: str) -> str:
    """Return an address without its query, and without what differs from task to task."""
    plain = re.sub(r"\{\{ root \}\}", "", address).partition("?")[0]
    return re.sub(r"\{\{.*?\}\}|\{[a-z]+\}", "{}", plain)


def find_template(action: Action) -> str:
    if action.name.startswith("bulk-"):
        return "bulk.html"
    return action.template or PAGES[normalize(action.path)]


def tries(action: Action, form: Form) -> bool:
    """Return whether an action sends this form."""
    template, target, fields = form
    if find_template(action) != template:
        return False
    if target in {"", "{}"}:  # its own address, or one that the view model names
        return True
    return normalize(action.forced or action.path) == target and set(action.form) - {"etag"} == fields


def sort_forms() -> list[Form]:
    def key(form: Form) -> tuple[str, str, list[str]]:
        return form[0], form[1], sorted(form[2])

    return sorted(list_forms(), key=key)


@try_each("form", sort_forms())
def test_each_form_is_tried_by_an_action(form: Form) -> None:
    """Whoever adds a form adds an action to actions.py, which a browser then tries."""
    other = OTHERS.get((form[0], form[1]))
    if other is not None:
        file, _, name = other.partition("::")
        assert f"def {name}(" in (TESTS / file).read_text("utf-8")
        return
    assert [action.name for action in ACTIONS if tries(action, form)], f"no action sends {form}"


def test_each_action_has_a_form() -> None:
    """An action whose form is gone is gone, too."""
    forms = list_forms()
    assert [action.name for action in ACTIONS if not any(tries(action, form) for form in forms)] == []


def test_forms_are_found() -> None:
    """The search above sees the forms that there are: as many as the templates open, with their targets."""
    opened = sum(file.read_text("utf-8").count('method="post"') for file in TEMPLATES.glob("*.html"))
    forms = list_forms()
    assert opened >= 15
    assert ("execution.html", "tasks/{}/verbs/retry", frozenset({"executionId", "fromStep"})) in forms
    assert ("tasks.html", "tasks/{}/verbs/pause", frozenset()) in forms
    assert ("home.html", "tasks/{}/verbs/retry", frozenset({"executionId"})) in forms
    assert ("home.html", "tasks/{}/verbs/resume", frozenset()) in forms
