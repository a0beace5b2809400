"""The page with nothing but a keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.dashboard.browser.conftest import Site, Visitor
from tests.harness import wait_until

from cloudsched.web.auth.roles import Role


def test_the_first_tab_skips_to_the_view(tour: Visitor) -> None:
    """Tab, Enter: the view has the focus, past the navigation."""
    page = tour.go("tasks")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_question_mark_lists_the_keys(tour: Visitor) -> None:
    """`?` opens the list, Esc closes it, and the focus is where it was."""
    page = tour.go("tasks")
    page.keyboard.press("j")
    before = page.evaluate("document.activeElement.href")
    page.keyboard.press("?")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.evaluate("document.activeElement.href") == before


def test_keys_lead_to_views_and_rows(tour: Visitor) -> None:
    """`g c` goes to the calendar, `g t` to tasks; `j` and `k` move between rows; Enter opens one."""
    page = tour.go("")
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_url("**/calendar")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/tasks")
    page.keyboard.press("j")
    first = page.evaluate("document.activeElement.href")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.href") != first
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.href") == first
    page.keyboard.press("Enter")
    page.wait_for_url(first)


def test_u_shows_utc_and_goes_back(visitor: Visitor) -> None:
    """In every view: the switch always has the zone of the browser, too."""
    page = visitor.open("")
    switch = page.get_by_role("group", name="Show times in")
    expect(switch.locator("[aria-current]")).to_have_text("Europe/Paris")
    for zone in ("UTC", "Europe/Paris", "UTC"):
        page.keyboard.press("u")
        expect(switch.locator("[aria-current]")).to_have_text(zone)
        page.wait_for_load_state()  # the keys of this page are taken from then on
        assert switch.get_by_role("link").count() == 2


@pytest.mark.parametrize("key", ["Control+k", "Meta+k"])
def test_the_command_key_finds_from_anywhere(visitor: Visitor, key: str) -> None:
    """Also from within another field, and with single keys switched off; Enter leads to what was looked for."""
    page = visitor.open("tasks")
    page.keyboard.press("?")
    page.get_by_label("Turn single-key shortcuts off").check()
    page.keyboard.press("Escape")
    page.locator("main input:visible").first.focus()
    page.keyboard.press(key)
    expect(page.locator("#find")).to_be_focused()
    page.keyboard.type("weekday-rep")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=weekday-rep")
    expect(page.locator("main")).to_contain_text("Weekday report")


def test_single_keys_are_off_while_typing_and_can_be_switched_off(visitor: Visitor) -> None:
    """In a field, `g t` is text; switched off, keys do nothing, and it is remembered."""
    page = visitor.open("tasks")
    page.keyboard.press("/")
    page.keyboard.type("gc?")
    assert page.locator("#find").input_value() == "gc?"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.get_by_label("Turn single-key shortcuts off").check()
    page.keyboard.press("Escape")
    page.reload()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement === document.body")


def test_keys_tick_rows(tour: Visitor, site: Site) -> None:
    """`x` ticks the row that has the focus and unticks it again, with Shift all from the last ticked one up to here."""
    for number in range(4):
        site.create(f"ticked-{number}", labels=["case=ticked"])
    page = tour.go("tasks?label=case%3Dticked")
    boxes = page.locator("td.pick input")
    page.keyboard.press("x")
    assert boxes.evaluate_all("all => all.filter(each => each.checked).length") == 0, "no row has the focus"
    page.keyboard.press("j")
    page.keyboard.press("x")
    assert boxes.evaluate_all("all => all.map(each => each.checked)") == [True, False, False, False]
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Shift+X")
    assert boxes.evaluate_all("all => all.map(each => each.checked)") == [True, True, True, False]
    page.keyboard.press("x")
    assert boxes.evaluate_all("all => all.map(each => each.checked)") == [True, True, False, False]


def test_keys_pause_a_task_and_undo_it(tour: Visitor, site: Site) -> None:
    """`p` pauses the task that is shown, `z` takes that back; `e` edits it, and `n` in the list makes a new one."""
    site.create("keyed")
    page = tour.go("tasks/keyed")
    page.keyboard.press("p")
    page.get_by_text("Paused.", exact=True).wait_for()
    assert site.call("GET", "/v1/tasks/keyed")["status"] == "PAUSED"
    page.keyboard.press("z")
    page.get_by_text("Resumed.", exact=True).wait_for()
    assert site.call("GET", "/v1/tasks/keyed")["status"] == "ACTIVE"
    page.keyboard.press("e")
    page.wait_for_url("**/tasks/keyed/edit")
    page.goto(page.url.replace("/keyed/edit", ""))
    page.keyboard.press("n")
    page.wait_for_url("**/new")


def test_a_task_is_run_by_keys_after_a_question(tour: Visitor, site: Site) -> None:
    """`t` asks, with the payload; nothing runs before Enter; then the question is closed."""
    site.create("asked", handler="echo", payload={"about": "<i>sales</i>"})
    page = tour.go("tasks/asked")
    page.keyboard.press("t")
    question = page.locator("details.ask[open]")
    expect(question).to_contain_text('"about": "<i>sales</i>"')
    expect(question).to_contain_text("The schedule stays as it is")
    assert site.call("GET", "/v1/tasks/asked/executions")["executions"] == []
    page.keyboard.press("Enter")
    page.get_by_text("A run was requested.", exact=True).wait_for()
    wait_until(lambda: len(site.call("GET", "/v1/tasks/asked/executions")["executions"]) == 1)
    expect(question).to_have_count(0)


def test_ticked_rows_are_what_a_change_asks_about(tour: Visitor, site: Site) -> None:
    """What it would not change does not count, and if that is all of them nothing is started."""
    for name in ("bulk-paused", "bulk-active"):
        site.create(name, labels=["case=bulked"])
    site.call("POST", "/v1/tasks/bulk-paused/pause")
    page = tour.go("tasks?label=case%3Dbulked")
    resume = page.locator("#bulk button[value=RESUME]")
    page.get_by_label("Choose bulk-active").check()
    resume.click()
    page.get_by_role("heading", name="Nothing to resume").wait_for()
    page.goto(f"{site.pages[Role.ADMIN]}tasks?label=case%3Dbulked")
    page.get_by_label("Choose bulk-active").check()
    page.get_by_label("Choose bulk-paused").check()
    resume.click()
    page.get_by_role("heading", name="Resume 1 task?").wait_for()
