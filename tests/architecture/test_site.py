"""The documentation's site has every page and picture, and its check finds what is wrong with a built one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
GENERATED = {"index.md", "reference/python.md", "reference/client.md", "reference/testing.md", "reference/http.md"}
GENERATED |= {"reference/words.md", "reference/commands.md", "project/contributing.md", "project/changes.md"}


def check(site: Path) -> subprocess.CompletedProcess[str]:
    """Run the check of a built site."""
    command = [sys.executable, str(ROOT / ".ci" / "site" / "check.py"), str(site)]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own script


def test_every_page_is_in_the_navigation() -> None:
    """A new page is found by its readers; `./emulator.sh docs` refuses a site with a page that is not."""
    named = re.findall(r"^ +- [^:]+: ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(named) == sorted({page.relative_to(ROOT / "docs").as_posix() for page in PAGES} | GENERATED)


def test_every_diagram_has_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python .ci/site/draw_diagrams.py` draws them; a diagram that was changed since has none."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci" / "site"))
    import diagrams  # type: ignore[import-not-found]  # noqa: PLC0415 - of the site's own folder

    for page in PAGES:
        assert "```mermaid" not in diagrams.put_pictures(page.read_text("utf-8")), page
    with pytest.raises(SystemExit, match=r"draw_diagrams\.py"):
        diagrams.put_pictures("```mermaid\nflowchart TD\n    never --> drawn\n```\n")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="other.html#here">x</a>', ""),
        ('<a href="other.html#nowhere">x</a>', "other.html#nowhere leads nowhere"),
        ('<a href="gone.html">x</a>', "gone.html leads nowhere"),
        ('<img src="gone.png">', "gone.png leads nowhere"),
        ('<script src="https://unpkg.com/x"></script>', "loads https://unpkg.com/x"),
        ('<link rel="stylesheet" href="//fonts.example/x.css">', "loads //fonts.example/x.css"),
    ],
)
def test_the_check_finds(tmp_path: Path, body: str, fault: str) -> None:
    """Links that lead nowhere, and whatever a page would load from another server."""
    (tmp_path / "index.html").write_text(body)
    (tmp_path / "other.html").write_text('<h1 id="here">x</h1>')
    checked = check(tmp_path)
    assert checked.returncode == bool(fault)
    assert fault in checked.stdout


def test_every_picture_has_a_command() -> None:
    """`python .ci/site/screenshots.py` takes the pictures of the pages; none is left over."""
    taken = (ROOT / ".ci" / "site" / "screenshots.py").read_text("utf-8")
    shown = "".join(page.read_text("utf-8") for page in [ROOT / "README.md", *PAGES])
    for picture in (ROOT / "docs" / "images").iterdir():
        if picture.is_file():
            assert f'"{picture.stem}"' in taken or f'"{picture.name}"' in taken, picture.name
            assert f"images/{picture.name}" in shown, picture.name
    for picture in re.findall(r"\]\((?:\.\./)?(?:docs/)?(images/[^)]+)\)", shown):
        assert (ROOT / "docs" / picture).is_file(), picture
