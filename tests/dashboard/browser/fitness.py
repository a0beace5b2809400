"""Whether a page is fit for everybody: axe, both colour schemes, wide and narrow, and nothing but a keyboard."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from tests.web.api.node_tools import install_node_tools

if TYPE_CHECKING:
    from playwright.sync_api import Page

STANDARDS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
COLOURS: Final = ["color-contrast", "link-in-text-block"]
"""The rules whose findings depend on colours alone."""
LAYOUTS: Final[tuple[tuple[Literal["light", "dark"], int, bool], ...]] = (
    ("light", 1280, True),
    ("light", 360, False),
    ("dark", 360, True),
    ("dark", 1280, False),
)
"""Colour scheme, width, and whether all rules are tried on the whole page: once at each width, once in each scheme.

Beside these, what a change of the width shows or gives another colour is tried on its colours in the same scheme.
"""
BEYOND: Final = """() => document.documentElement.scrollWidth <= innerWidth ? []
    : [...document.querySelectorAll('body *')]
    .filter(each => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest('pre'))
    .map(each => each.outerHTML.slice(0, 200))"""
"""What stands out of a page that scrolls sideways."""
OVER: Final = """() => [...document.querySelectorAll('.panel')]
    .filter(each => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1)
    .map(each => each.outerHTML.slice(0, 200))"""
"""The panels whose content stands out of them, over what is beside them."""
UNFOLD: Final = """() => {
    const closed = [...document.querySelectorAll('details:not([open])')];
    closed.forEach(each => each.open = true);
    return closed;
}"""
"""Opens what is folded, and returns it."""
LINES_OF: Final = r"""([selector, pattern]) => {
    const walk = document.createTreeWalker(document.querySelector(selector), NodeFilter.SHOW_TEXT);
    const found = [];
    while (walk.nextNode()) {
        for (const part of walk.currentNode.data.matchAll(new RegExp(pattern, 'g'))) {
            const range = document.createRange();
            range.setStart(walk.currentNode, part.index);
            range.setEnd(walk.currentNode, part.index + part[0].length);
            const tops = [...range.getClientRects()].map(each => Math.round(each.top));
            if (tops.length) found.push([part[0], new Set(tops).size]);
        }
    }
    return found;
}"""
"""The parts of a text that are seen and match a pattern, and on how many lines each is."""
DATE: Final = r"\d{4}-\d\d-\d\d|\d+\s[A-Z][a-z]+\s\d{4}"
_NOTE_LOOKS: Final = """() => {
    const look = element => {
        const {color, backgroundColor, fill, stroke, opacity} = getComputedStyle(element);
        return element.checkVisibility() && [color, backgroundColor, fill, stroke, opacity].join();
    };
    const looks = new Map([...document.querySelectorAll('body *')].map(each => [each, look(each)]));
    const before = window.testLooks;
    window.testLooks = looks;
    window.testChanged = before ? [...looks.keys()].filter(each => looks.get(each) !== before.get(each)) : [];
}"""
"""Notes how everything looks, and what has changed since the last time."""
_RUN_AXE: Final = """async ([only, isWhole]) => {
    const seen = isWhole ? document : window.testChanged.filter(each => each.checkVisibility());
    if (seen.length === 0) return [];
    const {violations} = await axe.run(seen, {runOnly: only, resultTypes: ['violations']});
    return violations.flatMap(({id, nodes}) =>
        nodes.map(({html, failureSummary}) => `${id}: ${html.slice(0, 200)} ${failureSummary}`))
}"""
_NUMBER_STOPS: Final = """() => {
    const stops = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
        .filter(each => each.checkVisibility({visibilityProperty: true}) && !each.disabled && each.type !== 'hidden'
            && each.getAttribute('tabindex') !== '-1');
    window.testVisits = [];
    document.activeElement.blur();
    document.addEventListener('focusin', ({target}) => {
        const {outlineStyle, outlineWidth} = getComputedStyle(target);
        window.testVisits.push([stops.indexOf(target), outlineStyle !== 'none' && parseFloat(outlineWidth) > 0]);
    });
    return stops.map(each => each.outerHTML.slice(0, 160));
}"""
"""Numbers what can be used, and from then on notes what gets the focus, and whether one sees that."""
_KEYS_AT_ONCE: Final = 20


@cache
def read_axe() -> str:
    """Return axe's script, of the version that the lock file beside this module names."""
    folder = install_node_tools(Path(__file__).parent / "node")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


def find_violations(page: Page, *, is_whole: bool = True) -> list[str]:
    """Return what axe finds, of all of WCAG 2.2 AA and its best practices; or in the colours of what has changed."""
    only = {"type": "tag", "values": STANDARDS} if is_whole else {"type": "rule", "values": COLOURS}
    if not page.evaluate("'axe' in window"):
        page.evaluate(read_axe())
    return [str(each) for each in page.evaluate(_RUN_AXE, [only, is_whole])]


def check(page: Page) -> None:
    """Check a page in both colour schemes, wide and narrow, without loading it again."""
    assert page.locator("h1").count() == 1
    assert page.locator("main").get_attribute("aria-busy") is None
    for scheme, width, is_whole in LAYOUTS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(_NOTE_LOOKS)
        assert find_violations(page, is_whole=is_whole) == [], f"{scheme}, {width} px"
        if is_whole:
            assert page.evaluate(BEYOND) == [], f"it scrolls sideways at {width} px"
            assert page.evaluate(OVER) == [], f"something stands out of its panel at {width} px"
    page.set_viewport_size({"width": 320, "height": 900})
    assert page.evaluate(BEYOND) == [], "it scrolls sideways at 320 px"
    page.set_viewport_size({"width": 360, "height": 900})
    closed = page.evaluate_handle(UNFOLD)
    assert page.evaluate(BEYOND) == [], "it scrolls sideways at 360 px once all is unfolded"
    closed.evaluate("all => all.forEach(each => each.open = false)")
    page.set_viewport_size({"width": 1280, "height": 900})


def check_keyboard(page: Page) -> None:
    """Check that Tab alone reaches all that can be used, and that one sees where it is."""
    stops = page.evaluate(_NUMBER_STOPS)
    missing, unseen = set(range(len(stops))), set[int]()
    more = [_KEYS_AT_ONCE] * (2 * len(stops) // _KEYS_AT_ONCE + 1)  # a field for a date has several stops
    for keys in (len(stops), *more):
        for _ in range(keys):
            page.keyboard.press("Tab")
        visits = page.evaluate("window.testVisits")
        missing -= {number for number, _ in visits}
        unseen = {number for number, is_seen in visits if number >= 0 and not is_seen}
        if not missing:
            break
    assert [stops[each] for each in sorted(missing)] == [], "Tab does not reach them"
    assert [stops[each] for each in sorted(unseen)] == [], "one does not see that they have the focus"
