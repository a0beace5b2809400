"""The page with nothing but a keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.dashboard.browser.conftest import Site, Visitor


def test_the_first_tab_skips_to_the_view(visitor: Visitor) -> None:
    """Tab, Enter: the view has the focus, past the navigation."""
    page = visitor.open("tasks")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_question_mark_lists_the_keys(visitor: Visitor) -> None:
    """`?` opens the list, Esc closes it, and the focus is where it was."""
    page = visitor.open("tasks")
    page.keyboard.press("j")
    before = page.evaluate("document.activeElement.href")
    page.keyboard.press("?")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.evaluate("document.activeElement.href") == before


def test_keys_lead_to_views_and_rows(visitor: Visitor) -> None:
    """`g c` goes to the calendar, `g t` to tasks; `j` and `k` move between rows; Enter opens one."""
    page = visitor.open("")
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


def test_single_keys_are_off_while_typing_and_can_be_switched_off(visitor: Visitor) -> None:
    """In a field, `g t` is text; switched off, keys do nothing, and it is remembered."""
    page = visitor.open("tasks")
    page.keyboard.press("/")
    page.keyboard.type("gc?")
    assert page.locator("#q").input_value() == "gc?"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.get_by_label("Single keys off").check()
    page.keyboard.press("Escape")
    page.reload()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement === document.body")


def test_marks_of_the_calendar_are_one_tab_stop_a_day(visitor: Visitor) -> None:
    """Arrows move from mark to mark in a day; Tab goes to the next day."""
    page = visitor.open("calendar?week=2027-03-22&tz=UTC")
    marks = page.locator(".week svg a")
    assert marks.count() > 7
    assert page.locator(".week svg a:not([tabindex])").count() <= 7
    row = page.locator(".week > li", has=page.locator("svg a:nth-of-type(2)")).first
    row.locator("svg a").first.focus()
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowRight")
    second = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert second
    assert second != first
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == first


def test_keys_tick_rows(visitor: Visitor, site: Site) -> None:
    """`x` ticks the row that has the focus and unticks it again, with Shift all from the last ticked one up to here."""
    for number in range(4):
        site.create(f"ticked-{number}", labels=["case=ticked"])
    page = visitor.open("tasks?label=case%3Dticked")
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


def test_keys_pause_a_task_and_undo_it(visitor: Visitor, site: Site) -> None:
    """`p` pauses the task that is shown, `z` takes that back; `e` edits it, and `n` in the list makes a new one."""
    site.create("keyed")
    page = visitor.open("tasks/keyed")
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


def test_what_was_paused_in_the_list_is_undone_there(visitor: Visitor, site: Site) -> None:
    """The list stays, says what was done, and undoes it."""
    site.create("listed", labels=["case=listed"])
    page = visitor.open("tasks?label=case%3Dlisted")
    page.get_by_role("row").filter(has_text="listed").get_by_role("button", name="Pause").click()
    page.get_by_text("Paused.", exact=True).wait_for()
    page.get_by_role("button", name="Undo").click()
    site.wait_until(lambda: site.call("GET", "/v1/tasks/listed")["status"] == "ACTIVE")
    assert "label=case" in page.url
