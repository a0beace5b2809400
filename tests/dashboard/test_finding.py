"""The box on every page, the list of changes, two executions side by side, and the times that a person enters."""

from __future__ import annotations

import html
import re
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.conftest import NOW, find_execution, get, look, visit

from cloudsched.dashboard.times import read_instant
from cloudsched.dashboard.views import audit as audit_view
from cloudsched.dashboard.views.task import name_actor
from cloudsched.domain.documents.authority import ANONYMOUS, TRUSTED_CODE, say_subject
from cloudsched.domain.documents.name_words import rank_nearness
from cloudsched.domain.documents.task import HistoryEntry
from cloudsched.domain.documents.verbs import Action
from cloudsched.engine.queries.audit_trail import AuditQuery

PARIS = ZoneInfo("Europe/Paris")


def test_a_fragment_finds_tasks_and_handlers_and_a_whole_id_opens_at_once(ui: str) -> None:
    """In the middle of a title, in any case, with the handler of that name; the id of a task or of an execution."""
    page = get(ui + "/search", q="EPORT").text
    assert "tasks/weekday-report" in page
    assert "tasks?handler=report" in page
    assert get(ui + "/search", q="weekday-report").url.endswith("/tasks/weekday-report")
    execution = find_execution(ui, "weekday-report")
    found = get(ui + "/search", q=f"weekday-report/{execution}")
    assert found.url.endswith(f"/tasks/weekday-report/executions/{execution}")


@pytest.mark.parametrize("text", ['"', "' OR 1=1 --", "%", "*", "x" * 10_000, "\u202e", "\x00", "<script>", "a" * 501])
def test_no_text_is_an_error(ui: str, text: str) -> None:
    """Whatever somebody pastes into the box, the page says that nothing has it, and never runs it."""
    found = get(ui + "/search", q=text)
    assert found.status_code == 200
    assert ('class="list cut"' in found.text) == (text == "<script>"), "a title of this stack has that"
    assert "<script>" not in found.text


def test_whoever_the_list_of_changes_names_can_be_asked_for_by_that_name(ui: str) -> None:
    """The list has all tasks, with who, what and when; a filter leaves out the others."""
    shown = re.compile(r'<a href="[^"]*(/audit\?by=[^"]+)"><code>([^<]+)</code>')
    page, none = get(ui + "/audit").text, get(ui + "/audit", by="nobody-like-it").text
    assert "Created" in page
    assert "Deployment:" not in none
    assert "No changes match." in none
    found = {*shown.findall(page)}
    assert say_subject(ANONYMOUS) in {name for _, name in found}
    for link, name in found:
        for text in (get(ui + link).text, get(ui + "/audit", by=name.partition(" ")[0]).text):
            assert {*shown.findall(text)} == {(link, name)}
    for by in (None, TRUSTED_CODE):
        entry = HistoryEntry(at=NOW, action=Action.PAUSED, by=by)
        assert AuditQuery(by=name_actor(by.to_wire() if by else None)).matches(entry)


def test_a_tasks_owner_leads_to_their_page(ui: str) -> None:
    [path] = re.findall('href="[^"]*(/people/[^"]*)"', get(ui + "/tasks/sync").text)
    assert "<h1>shop</h1>" in get(ui + path).text


def test_without_a_filter_nothing_fails_to_match() -> None:
    """What nobody has changed yet has no list, whatever is asked for."""
    nothing = {"entries": [], "deployments": [], "isComplete": True}
    assert audit_view.build(nothing, visit())["nothing"] == "No changes are kept."
    assert audit_view.build(nothing, visit(owner="ada"))["nothing"] == "No changes are kept."
    assert audit_view.build(nothing, look(owner="ada"))["nothing"] == "No changes match."


def test_a_failed_run_stands_beside_a_good_one(ui: str) -> None:
    """What only one of them has is marked by a sign, not by colour alone."""
    execution = find_execution(ui, "weekday-report")
    page = get(f"{ui}/tasks/weekday-report/executions/{execution}/compare").text
    assert "<h1>Compare Weekday report</h1>" in page
    assert len(re.findall("<(?:del|ins)>Started: ", page)) == 2


@pytest.mark.parametrize(
    ("text", "iso", "said"),
    [
        ("2027-03-27T09:00", "2027-03-27T08:00:00+00:00", ""),
        ("2027-03-27T09:00:00+05:00", "2027-03-27T04:00:00+00:00", ""),
        ("2027-03-28T02:30", "2027-03-28T01:30:00+00:00", "skips 02:30"),
        ("2027-10-31T02:30", "2027-10-31T00:30:00+00:00", "twice"),
        ("", "", ""),
    ],
)
def test_a_wall_clock_time_means_one_instant(text: str, iso: str, said: str) -> None:
    """A gap means the time after it, of a fold the first is meant, and both are said."""
    entered = read_instant(text, PARIS, "from")
    assert entered.iso == iso
    assert said in entered.note
    assert bool(said) == bool(entered.note)


def test_what_is_no_name_can_be_looked_for_elsewhere(ui: str) -> None:
    """In the errors of runs and in payloads: a search that finds nothing is no dead end."""
    page = get(ui + "/search", q="warehouse").text
    assert "Nothing is named “warehouse”." in page
    [number] = re.findall(r">(\d+) runs? of the last", page)
    links = [html.unescape(each) for each in re.findall(r'<li><a class="chip" href="([^"]+)">', page)]
    tasks, runs = (f"{ui}/{each.removeprefix('./')}" for each in links if each.startswith(("./runs", "./tasks")))
    assert f"{number} found" in get(runs).text
    assert get(tasks).status_code == 200


def rank(text: str, titles: list[str]) -> list[str]:
    """Return the titles of tasks whose ids are t0, t1 and so on, the nearest first."""
    ids = [f"t{number}" for number in range(len(titles))]
    return [title for title, _ in sorted(zip(titles, ids, strict=True), key=lambda each: rank_nearness(text, *each))]


@given(st.permutations(["Weekly summary 77", "Weekly summary 177", "Weekly summary 770", "Week 77 of a summary"]))
def test_the_nearest_name_stands_first(titles: list[str]) -> None:
    """The whole name, then what ends as the text does, then the shorter ones; in whatever order they were found."""
    near = rank("ummary 77", titles)
    assert near[:2] == ["Weekly summary 77", "Weekly summary 770"]
    assert rank("weekly SUMMARY 177", titles)[0] == "Weekly summary 177"
    assert rank("77", titles)[-2:] == ["Weekly summary 177", "Weekly summary 770"]
    assert rank("t2", titles)[0] == titles[2]


@given(st.permutations([f"Task {number} of it{letter}" for number in (2, 9, 10, 33) for letter in ("", "!")]))
def test_equally_near_names_stand_in_the_order_of_their_numbers(titles: list[str]) -> None:
    """A list does not jump between two looks, and 9 comes before 10 of the same length."""
    near = rank("task", titles)
    of_same_length = sorted(near, key=len)
    assert near == of_same_length
    for length in {len(each) for each in near}:
        numbers = [int(each.split()[1]) for each in near if len(each) == length]
        assert numbers == sorted(numbers)
