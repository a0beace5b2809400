"""Check the built site: pages load nothing from another server, and each link within the site leads somewhere.

Usage: python .ci/site/check.py SITE
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "srcset", "video": "src"}
HARMLESS = {"canonical", "alternate", "prev", "next"}
"""Relations of a `link` that load nothing."""


class Page(HTMLParser):
    """What a page loads, links to, and can be linked at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect from one element."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values and values.get("rel") not in HARMLESS:
            self.loads.append(values[LOADED[tag]])


def find_faults(site: Path) -> list[str]:
    """Return what is wrong, one line each."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    faults = [] if pages else [f"{site} has no pages"]
    for page in pages.values():
        name = page.path.relative_to(site)
        if page.path.name != "404.html":  # which servers show at any address
            faults += [
                f"{name}: {target} leads nowhere"
                for target in page.links + page.loads
                if leads_nowhere(page, target, pages)
            ]
        faults += [f"{name}: loads {target}" for target in page.loads if urlsplit(target).netloc]
    return sorted(set(faults))


def leads_nowhere(page: Page, target: str, pages: dict[Path, Page]) -> bool:
    """Return whether a target within the site is missing. Other servers are not asked."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return False
    path = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
    if path.is_dir():
        path /= "index.html"
    if not path.is_file():
        return True
    anchor = unquote(parts.fragment)
    return bool(anchor and path in pages and anchor not in pages[path].anchors and anchor != "__top")


if __name__ == "__main__":
    found = find_faults(Path(sys.argv[1]).resolve())
    print(
        *found or ["the site is whole: no page loads anything from elsewhere, and each link leads somewhere"], sep="\n"
    )
    sys.exit(bool(found))
