"""The pages of the site that are no files of docs/: the README as the home page, and the generated reference.

MkDocs calls the functions named ``on_…`` (see ``hooks`` in mkdocs.yml).
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import TYPE_CHECKING

import costs
import diagrams
import http_api
import limits
from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
WHOLE_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changes.md",
}
"""Where the site shows the repository's own pages."""
_BEHIND_OTHERS = {"boost": 0.2}
"""What a search finds on a generated page, which has every word, comes after what people have written."""
_CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\(\s*|<(?:img|source|a)\b[^>]*?\b(?:src|srcset|href)=\")([^)\s\"#]+)")
_FIGURES = {"run/costs.md": costs.put, "reference/tasks.md": limits.put}
"""What writes the figures of a page that follow from the code."""
_FROM_CODE = {"reference/commands.md", "reference/python.md"}
"""Pages that scripts beside this one have written into docs/, since they follow from the code."""
_FOREIGN = ("http://", "https://", "mailto:")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are generated, and each file outside docs/ that a page links to."""
    pages = {place: turn_links((ROOT / path).read_text("utf-8"), path, place) for path, place in WHOLE_PAGES.items()}
    for path in [*WHOLE_PAGES, *(each.relative_to(ROOT).as_posix() for each in (ROOT / "docs").rglob("*.md"))]:
        for target in _list_targets(path):
            if not target.startswith("docs/") and target not in WHOLE_PAGES and (ROOT / target).is_file():
                pages[_place(target)] = _show_source(target)
    for place, text in pages.items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Put figures and pictures in place, and lead links to files outside docs/ to the pages that show them here."""
    if page.file.src_uri in _FROM_CODE or page.file.src_uri.startswith("source/"):
        page.meta["search"] = _BEHIND_OTHERS
    if put := _FIGURES.get(page.file.src_uri):
        markdown = put(markdown)
    if page.file.generated_by is None:
        markdown = turn_links(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)
    if page.file.src_uri.startswith("contributors/"):
        page.meta["search"] = {"boost": 0.2}
    if page.file.src_uri == "reference/http.md":
        markdown += "\n" + http_api.render()
    return diagrams.put_pictures(markdown)


def turn_links(text: str, path: str, place: str) -> str:
    """Return a page of the repository with its links as they are from its place in the site."""

    def turn(link: re.Match[str]) -> str:
        if link[2].startswith(_FOREIGN):
            return link[0]
        target = normpath(PurePosixPath(path).parent / link[2])
        return link[1] + relpath(_place(target), PurePosixPath(place).parent)

    parts = _CODE.split(text)
    parts[::2] = [_LINK.sub(turn, part) for part in parts[::2]]
    return "".join(parts)


def _place(target: str) -> str:
    """Return where the site shows a file of the repository."""
    if target in WHOLE_PAGES:
        return WHOLE_PAGES[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    return f"source/{target}.md"


def _show_source(path: str) -> str:
    return f"# {path}\n\n````{PurePosixPath(path).suffix[1:] or 'text'}\n{(ROOT / path).read_text('utf-8')}\n````\n"


def _list_targets(path: str) -> list[str]:
    text = _CODE.sub("", (ROOT / path).read_text("utf-8"))
    return [
        normpath(PurePosixPath(path).parent / link[2])
        for link in _LINK.finditer(text)
        if not link[2].startswith(_FOREIGN)
    ]
