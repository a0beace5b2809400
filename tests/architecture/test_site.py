"""The documentation's site has every page and picture, and its check finds what is wrong with a built one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
GENERATED = {"index.md"}


def test_every_page_is_in_the_navigation() -> None:
    """A new page is found by its readers; those for contributors are linked from CONTRIBUTING.md instead."""
    named = re.findall(r"^ +- [^:]+: ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.parent.name != "contributors"}
    assert sorted(named) == sorted(pages | GENERATED)


def test_every_diagram_has_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python .ci/site/draw_diagrams.py` draws them; a diagram that was changed since has none."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci" / "site"))
    import diagrams  # type: ignore[import-not-found]  # noqa: PLC0415 - of the site's own folder

    for page in PAGES:
        assert "```mermaid" not in diagrams.put_pictures(page.read_text("utf-8")), page
    with pytest.raises(SystemExit, match=r"draw_diagrams\.py"):
        diagrams.put_pictures("```mermaid\nflowchart TD\n    never --> drawn\n```\n")


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


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("You see " + "word " * 40 + "here.", "above 30 words"),
        ("You stop it; it stops.", "semicolons"),
        ("What you stop stops.", "begins with a relative word"),
        ("It stops.", "say you"),
    ],
)
def test_prose_that_readers_stumble_over_is_refused(monkeypatch: pytest.MonkeyPatch, sentence: str, fault: str) -> None:
    """Outside code and tables; a plain page passes."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci" / "site"))
    import prose  # type: ignore[import-not-found]  # noqa: PLC0415 - of the site's own folder

    plain = "# Stop\n\nYou stop it here.\n\n```sh\nstop; What you stop stops.\n```\n"
    assert prose.find_faults({"docs/run/serve.md": plain}) == []
    assert [each for each in prose.find_faults({"docs/run/serve.md": f"# Stop\n\n{sentence}\n"}) if fault in each]
