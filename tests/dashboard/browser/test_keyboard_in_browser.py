"""The page with nothing but a keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.dashboard.browser.conftest import Visitor


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
