"""The box on every page, the list of changes, two executions side by side, and the times that a person enters."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from tests.dashboard.conftest import find_execution, get

from cloudsched.dashboard.local_instants import read_instant

PARIS = ZoneInfo("Europe/Paris")


def test_a_fragment_finds_tasks_and_handlers(ui: str) -> None:
    """In the middle of a title, in any case; the handler of that name is found as well."""
    page = get(ui + "/search", q="EPORT").text
    assert "tasks/weekday-report" in page
    assert "tasks?handler=report" in page


def test_a_whole_id_opens_at_once(ui: str) -> None:
    """That of a task, and that of one of its executions."""
    assert get(ui + "/search", q="weekday-report").url.endswith("/tasks/weekday-report")
    execution = find_execution(ui, "weekday-report")
    found = get(ui + "/search", q=f"weekday-report/{execution}")
    assert found.url.endswith(f"/tasks/weekday-report/executions/{execution}")


def test_a_slip_is_answered_with_what_was_meant(ui: str) -> None:
    """At the box, and in the list of tasks."""
    assert "handler:report</a>" in get(ui + "/search", q="repotr").text
    assert "handler:report</a>" in get(ui + "/tasks", q="handler:repotr").text


@pytest.mark.parametrize("text", ['"', "' OR 1=1 --", "%", "*", "x" * 10_000, "\u202e", "\x00", "<script>", "a" * 501])
def test_no_text_is_an_error(ui: str, text: str) -> None:
    """Whatever somebody pastes into the box, the page says that nothing has it, and never runs it."""
    found = get(ui + "/search", q=text)
    assert found.status_code == 200
    assert ('class="list"' in found.text) == (text == "<script>"), "a title of this stack has that"
    assert "<script>" not in found.text


def test_changes_are_listed_over_all_tasks(ui: str) -> None:
    """With who, what and when; a filter leaves out the others."""
    page = get(ui + "/audit").text
    assert "Created" in page
    assert "Deployment of" not in get(ui + "/audit", by="nobody-like-it").text
    assert "No changes match." in get(ui + "/audit", by="nobody-like-it").text


def test_a_failed_run_stands_beside_a_good_one(ui: str) -> None:
    """What differs is marked by a sign and a word, not by colour alone."""
    execution = find_execution(ui, "weekday-report")
    page = get(f"{ui}/tasks/weekday-report/executions/{execution}/compare").text
    assert "<h1>Compare two runs</h1>" in page
    assert "differ" in page or "the same" in page


@pytest.mark.parametrize(
    ("text", "iso", "said"),
    [
        ("2027-03-27T09:00", "2027-03-27T08:00:00+00:00", ""),
        ("2027-03-27T09:00:00+05:00", "2027-03-27T04:00:00+00:00", ""),
        ("2027-03-28T02:30", "2027-03-28T01:30:00+00:00", "skips 02:30"),
        ("2027-10-31T02:30", "2027-10-31T00:30:00+00:00", "twice"),
        ("yesterday", "", "is no time"),
        ("0001-01-01T00:00", "", "is no time"),
        ("", "", ""),
    ],
)
def test_a_wall_clock_time_means_one_instant(text: str, iso: str, said: str) -> None:
    """A gap means the time after it, of a fold the first is meant, and both are said."""
    entered = read_instant(text, PARIS)
    assert entered.iso == iso
    assert said in entered.note
    assert bool(said) == bool(entered.note)
