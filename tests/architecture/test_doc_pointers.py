"""The documents' pointers into the code and the tests lead somewhere."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from tests.cases import try_each

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "cloudsched"
PAGES = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "src").rglob("*.md"), *ROOT.glob("tests/*/*.md")]
FOLDERS = ("src", "tests", "docs", "infra", "functions", "benchmarks", "clients", "requirements", ".ci", ".github")
PATH = re.compile(r"(?<![\w./:<{$~-])(\.?[\w-]+(?:/[\w.*-]+)*/?)(?![\w/:(])")
OWN = ("infra/config.sh", "infra/production.sh", "infra/README.md", "OWNER/", ".venv/", "build/", "dist/")
"""What pages name that is yours, or made."""
LINK = re.compile(r"(?:\]\(|(?:src|srcset|href)=\")([^)\s#\"]+)")
SOURCES = [
    *(
        path
        for folder in ("src", "functions", "infra", "benchmarks", "tests", ".ci")
        for path in (ROOT / folder).rglob("*")
    ),
    ROOT / "emulator.sh",
]
CODE_BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`[^`\n]*`")


@cache
def list_test_names() -> set[str]:
    names: set[str] = set()
    for module in (ROOT / "tests").rglob("test_*.py"):
        names.add(module.stem)
        names.update(re.findall(r"def (test_\w+)", module.read_text()))
    return names


@try_each("page", PAGES)
def test_every_test_that_a_document_names_exists(page: Path) -> None:
    """A renamed test is renamed in the documents too. Code blocks are examples of users' own tests."""
    named = set(re.findall(r"\btest_\w+", CODE_BLOCK.sub("", page.read_text())))
    assert named <= list_test_names()


@try_each("page", PAGES)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    """A page that moves takes the links to it along. Links to other servers are not followed."""
    targets = set(LINK.findall(CODE_SPAN.sub("", CODE_BLOCK.sub("", page.read_text("utf-8")))))
    assert [each for each in targets if ":" not in each and not (page.parent / each).exists()] == []


@try_each("page", PAGES)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    """Whole, or the end of one, as `engine/ports/store.py`. Pages for users name files of theirs, too."""
    spans = re.findall(r"`([^`\n]+)`", CODE_BLOCK.sub("", page.read_text("utf-8")))
    is_ours = page.is_relative_to(ROOT / "docs/contributors") or not page.is_relative_to(ROOT / "docs")
    stale = {
        path
        for span in spans
        for path in PATH.findall(span)
        if not path.startswith(OWN) and (_begins_here(path) or (is_ours and ("/" in path or path.endswith(".py"))))
        if not any(fnmatch(each, f"*/{name}") for each in list_paths() for name in (path.rstrip("/"), f"{path}.py"))
    }
    assert stale == set()


def _begins_here(path: str) -> bool:
    first, _, rest = path.partition("/")
    return first in FOLDERS and bool(rest)


@cache
def list_paths() -> list[str]:
    """Return the files and the folders of the repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    files = [Path(each) for each in listed.stdout.splitlines()]
    return sorted({f"/{each}" for file in files for each in (file, *file.parents)})


def test_every_page_that_the_code_names_exists() -> None:
    """Docstrings, errors and scripts that send a reader to ``docs/…`` send them to a page that is there."""
    texts = {path: path.read_text("utf-8", "replace") for path in SOURCES if path.is_file() and path.suffix != ".pyc"}
    named = {(path, page) for path, text in texts.items() for page in re.findall(r"\bdocs/[\w/-]+\.md\b", text)}
    assert named
    assert sorted(f"{path}: {page}" for path, page in named if not (ROOT / page).is_file()) == []


def test_every_module_that_the_code_names_exists() -> None:
    """Those of docstrings, such as `engine.ports.queue`, and of folders' READMEs, such as `times.py`, are there."""
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    named = {
        (path, name)
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r"(?<!`)`((?:[a-z_]+\.)+\w+)`(?!`)", path.read_text("utf-8"))
        if name.partition(".")[0] in rooms
    }
    assert named
    assert sorted(f"{path}: {name}" for path, name in named if not _is_there(name)) == []
    readme = {
        (path, name) for path in PACKAGE.rglob("README.md") for name in re.findall(r"`(\w+\.py)`", path.read_text())
    }
    assert readme
    assert sorted(f"{path}: {name}" for path, name in readme if not (path.parent / name).is_file()) == []


def _is_there(name: str) -> bool:
    """Return whether there is such a room or module, or a module with such a name in it."""
    path, _, last = name.rpartition(".")
    place, parent = PACKAGE / name.replace(".", "/"), PACKAGE / path.replace(".", "/")
    if place.is_dir() or place.with_suffix(".py").is_file():
        return True
    modules = [each for each in (parent.with_suffix(".py"), parent / "__init__.py") if each.is_file()]
    return any(re.search(rf"\b{last}\b", each.read_text("utf-8")) for each in modules)
