"""Draw the Mermaid diagrams of docs/ for the site: ``python .ci/site/draw_diagrams.py``.

Needs npm, which fetches Mermaid, and Debian's Chromium, in which Mermaid draws. The pictures have no style of their
own: ``docs/stylesheets/site.css`` gives them the colours of the page around them, light or dark. A picture is named by
a digest of its diagram's text, so the site's build notices a diagram that was changed and not drawn again.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from diagrams import BLOCK, FOLDER, name_picture
from playwright.sync_api import sync_playwright

ROOT: Final = Path(__file__).parents[2]
MERMAID: Final = "mermaid@11.17.2"
OWN_STYLE: Final = re.compile(r"<style>.*?</style>| data-[a-z]+=\"[^\"]*\"", re.DOTALL)
DRAW: Final = """async ([name, source]) => {
    mermaid.initialize({startOnLoad: false, htmlLabels: false, theme: 'neutral', fontFamily: 'sans-serif',
        flowchart: {htmlLabels: false, useMaxWidth: true}, state: {useMaxWidth: true}});
    return (await mermaid.render(name, source)).svg;
}"""


def list_diagrams() -> list[str]:
    """Return the text of each diagram in docs/."""
    return [
        source for page in sorted((ROOT / "docs").rglob("*.md")) for source in BLOCK.findall(page.read_text("utf-8"))
    ]


def fetch_mermaid(folder: Path) -> Path:
    """Return Mermaid's script, fetched by npm."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("npm is needed: https://nodejs.org")
    subprocess.run([npm, "pack", "--silent", MERMAID], cwd=folder, check=True)  # noqa: S603 - our own arguments
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as packed:
        packed.extract("package/dist/mermaid.min.js", folder, filter="data")
    return folder / "package" / "dist" / "mermaid.min.js"


def main() -> None:
    """Draw each diagram anew, and remove the pictures of diagrams that are gone."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_content("<!doctype html><body></body>")
        page.add_script_tag(path=fetch_mermaid(Path(folder)))
        pictures = {}
        for source in list_diagrams():
            name = name_picture(source)
            drawn = page.evaluate(DRAW, [f"diagram-{name[:8]}", source])
            pictures[name] = OWN_STYLE.sub("", drawn) + "\n"
        browser.close()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.svg"):
        if old.name not in pictures:
            old.unlink()
    for name, text in pictures.items():
        (FOLDER / name).write_text(text, "utf-8")
        print(name, len(text))


if __name__ == "__main__":
    main()
