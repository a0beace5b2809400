"""Look at the pages of the built site in a browser: 360 and 1280 pixels wide, light and dark, and without network.

Usage: python .ci/site/browse.py SITE [PAGE…]

A page fails that is wider than the window, writes an error to the console, or asks for anything outside of the
folder. Then the search has to find a word, from the folder, without a server. Needs Chromium and Playwright.
"""

import shutil
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTHS = (360, 1280)
PATIENCE = 120_000
"""Milliseconds that a busy machine gets for a page."""
WORD = "occurrence"
"""A word that is on many pages."""


def find_faults(site: Path, chromium: str, only: list[str]) -> list[str]:
    """Return what is wrong, one line each."""
    # Servers show 404.html at any address, so it names its files from the root of a site, which a folder has not.
    pages = [site / name for name in only] or sorted(set(site.rglob("*.html")) - {site / "404.html"})
    faults = [] if pages else [f"{site} has no pages"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        for scheme, width in product(("light", "dark"), WIDTHS):
            viewport = {"width": width, "height": 800}
            context = browser.new_context(viewport=viewport, color_scheme=scheme, offline=True, reduced_motion="reduce")
            page = context.new_page()
            noted: list[str] = []
            listen(page, noted)
            for file in pages:
                page.goto(file.as_uri(), wait_until="load", timeout=PATIENCE)
                noted += look(page, width, scheme)
                faults += [f"{file.relative_to(site)} ({width} px, {scheme}): {text}" for text in noted]
                noted.clear()
            if (site / "search").is_dir():
                page.goto((site / "index.html").as_uri(), timeout=PATIENCE)
                faults += [f"search ({width} px, {scheme}): {text}" for text in (*search(page, width), *noted)]
            context.close()
        browser.close()
    return faults


def listen(page: "Page", noted: list[str]) -> None:
    """Note errors and requests to elsewhere as they come."""
    page.on("console", lambda line: line.type == "error" and noted.append(line.text))
    page.on("pageerror", lambda error: noted.append(str(error)))
    page.on("request", lambda request: is_local(request.url) or noted.append(f"asks for {request.url}"))


def is_local(url: str) -> bool:
    """Return whether a request stays within the folder."""
    return url.startswith(("file:", "data:", "blob:", "about:"))


def look(page: "Page", width: int, scheme: str) -> list[str]:
    """Return what is wrong with how a page is shown."""
    wide = page.evaluate("document.documentElement.scrollWidth")
    faults = [f"is {wide} px wide"] if wide > width else []
    shown = page.evaluate("document.body.getAttribute('data-md-color-scheme')")
    if shown not in (None, {"light": "default", "dark": "slate"}[scheme]):
        faults.append(f"is shown in {shown}")
    return faults


def search(page: "Page", width: int) -> list[str]:
    """Type a word into the search; return what is wrong."""
    if width == min(WIDTHS):
        page.click("label.md-header__button[for=__search]")
    page.locator("input.md-search__input").press_sequentially(WORD, delay=20)  # on narrow screens it follows the keys
    try:
        found = page.wait_for_selector("a.md-search-result__link", state="attached", timeout=PATIENCE)
    except Exception as error:  # noqa: BLE001 - Playwright's; the message says what was waited for
        return [f"finds nothing: {str(error).splitlines()[0]}"]
    target = found.get_attribute("href") if found else None
    return (
        [] if target and "file:" in page.evaluate("(href) => new URL(href, location).href", target) else ["leads away"]
    )


if __name__ == "__main__":
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser_path is None:
        sys.exit("There is no Chromium. On Debian: apt install chromium.")
    found_faults = find_faults(Path(sys.argv[1]).resolve(), browser_path, sys.argv[2:])
    done = "every page fits and is quiet at 360 and 1280 px, light and dark, and the search works offline"
    print(*found_faults or [done], sep="\n")
    sys.exit(bool(found_faults))
