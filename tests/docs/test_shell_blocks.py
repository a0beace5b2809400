"""The commands of the pages are typed as they stand there, and print what stands below them."""

from __future__ import annotations

import json
import os
import re
import shutil
from calendar import isleap
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine
from tests.cases import try_each
from tests.deployables.real_gcloud import find_gcloud
from tests.doc_blocks import Block, matches, read_blocks, without_figures
from tests.docs.terminal import KEEP_RUNNING
from tests.docs.world import World, open_world
from tests.harness import ROOT

from cloudsched.cli import tasks

DOCS = ROOT / "docs"
SHELLS = {"sh", "bash", "console"}
OWN_TESTS = {
    **dict.fromkeys(("README.md", "quickstart.md"), "stories/test_tutorial.py"),
    "workers.md": "stories/test_workers_guide.py",
    **{page.name: "stories/test_tutorial.py" for page in (DOCS / "tutorial").glob("*.md")},
}
"""Pages that are one story from their first command to their last, which a test of their own tells with processes."""
PAGES = [
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")), *ROOT.glob("infra/**/*.md")]
    if page.name not in OWN_TESTS and any(block.language in SHELLS for block in read_blocks(page))
]
ALONE = {page for page in PAGES if page.name == "costs.md" or "/clock\n" in page.read_text("utf-8")}
"""Pages with a stack of their own: one says what all tasks have used, others move the clock."""
LEAP_YEAR = next(year for year in range(datetime.now(UTC).year + 1, 9999) if isleap(year))
DATES = {
    "today": None,
    "leap-day": datetime(LEAP_YEAR, 2, 29, 11, tzinfo=UTC),
    "year's-end": datetime(LEAP_YEAR + 2, 12, 31, 23, 30, tzinfo=UTC),
}
"""Days on which the pages are read; on the last each date of the pages is past."""
CLOUD = re.compile(r"\bgcloud |(?<!--config )\binfra/")
GCLOUD = re.compile(r"^gcloud (?:.*\\\n)*.*$", re.MULTILINE)
NOT_RUN = re.compile(r"not run: (.+)")
FIGURES_VARY = "figures vary"
ACCEPTED: set[tuple[str, ...]] = set()
"""The commands that gcloud's parser has taken in this process."""


@dataclass(frozen=True)
class Step:
    """What is typed at once, and what the page shows below it."""

    block: Block
    text: str
    shown: str | None
    answer: Block | None = None
    """A JSON document, which has at least what the page shows of it."""


def read_steps(page: Path) -> Iterator[Step]:
    """Yield what a reader of the page types, in its order."""
    blocks = list(read_blocks(page))
    for number, block in enumerate(blocks):
        if block.language == "console" and "\n$ eval " in f"\n{block.text}":
            yield Step(block, re.sub(r"^\$ ", "", block.text, flags=re.MULTILINE), None)
        elif block.language == "console":
            for found in re.finditer(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n?)*)", block.text, re.MULTILINE):
                yield Step(block, found[1], found[2] or None)
        elif block.language in SHELLS:
            following = blocks[number + 1] if number + 1 < len(blocks) else None
            language = following.language if following and following.section == block.section else None
            shown = following.text if following and language == "text" else None
            is_next = following is not None and following.line == block.line + block.text.count("\n") + 3
            is_answer = language == "json" and is_next
            yield Step(block, block.text, shown, following if is_answer else None)


def read_answers(page: Path) -> Iterator[Block]:
    """Yield the JSON blocks that a request directly above them answers."""
    yield from (step.answer for step in read_steps(page) if step.answer)


@pytest.fixture(scope="module", params=DATES)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A stack for all pages, today and on other days."""
    if shutil.which("curl") is None or shutil.which("jq") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("the pages' commands need curl and jq")
    date = DATES[request.param] or datetime.now(UTC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "POLL_SECONDS", 0.01)
        with time_machine.travel(date), open_world(tmp_path_factory.mktemp("pages")) as opened:
            yield opened


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_do_as_the_page_shows(world: World, page: Path, tmp_path: Path) -> None:
    """Each command succeeds, on any day; what it prints is what the page shows, but for what the page leaves open."""
    with open_world(tmp_path) if page in ALONE else nullcontext(world) as found:
        type_page(found, page)


def type_page(world: World, page: Path) -> None:
    for name, script in re.findall(
        r"([\w-]+\.js)\b[^`]*`?[^`]*\n\n```js\n(.*?)```", page.read_text("utf-8"), re.DOTALL
    ):
        (world.terminal.folder / name).write_text(script, "utf-8")
    for script in re.findall(r"```js\n(// ([\w-]+\.js)\n.*?)```", page.read_text("utf-8"), re.DOTALL):
        (world.terminal.folder / script[1]).write_text(script[0], "utf-8")
    for step in read_steps(page):
        write_modules(world.terminal.folder, page, step.block.line)
        text = step.text.replace('"wait": 20', '"wait": 1')  # a worker without work
        done = world.terminal.type(world.fill(step.block, text))
        assert done.returncode == 0, f"{step.block}:\n{step.text}\n{done.stdout[-900:]}{done.stderr}"
        if step.answer:
            assert is_like(json.loads(step.answer.text), json.JSONDecoder().raw_decode(done.stdout)[0]), (
                f"{step.answer}:\n{done.stdout}"
            )
        if step.shown is not None and not needs_process(step.text):
            printed = done.stderr + done.stdout
            shown = step.shown
            if FIGURES_VARY in step.block.mark:
                printed, shown = without_figures(printed), without_figures(shown)
            assert matches(shown, printed), f"{step.block} shows\n{shown}\nand this was printed:\n{printed}"


def write_modules(folder: Path, page: Path, line: int) -> None:
    """Write the page's Python: of a name that several blocks have, the last one above a line or else the next below."""
    blocks = [block for block in read_blocks(page) if block.language == "python"]
    for block in sorted(blocks, key=lambda block: block.line if block.line < line else -block.line):
        if name := re.match(r"# (\w+\.py)\n", block.text):
            (folder / name[1]).write_text(block.text, "utf-8")


def test_commands_for_google_cloud_are_accepted(world: World, tmp_path: Path) -> None:
    """Gcloud's own parser takes each command of the pages; those that another day has in the same words only once."""
    for page in PAGES:
        for step in read_steps(page):
            for command in GCLOUD.findall(step.text):
                world.terminal.type(world.fill(step.block, command))
    own = {world.stack.url: "http://127.0.0.1:8080", world.key: "csk_docs_…"}  # what differs from day to day
    typed = [
        [re.sub("|".join(map(re.escape, own)), lambda found: own[found[0]], word) for word in call]
        for call in world.terminal.read_calls()
        if call[0] == "gcloud"
    ]
    assert typed
    calls = [call for call in typed if tuple(call) not in ACCEPTED]
    faults = find_gcloud().parse([call[1:] for call in calls], tmp_path) if calls else []
    assert [(call, fault) for call, fault in zip(calls, faults, strict=True) if fault] == []
    ACCEPTED.update(map(tuple, calls))


@try_each("page", PAGES)
def test_what_no_machine_can_run_says_why(page: Path) -> None:
    """A comment above the block, which the page does not show, and only where there is a reason."""
    for block in read_blocks(page):
        if block.language in SHELLS:
            is_for_cloud = CLOUD.search(re.sub(r"#.*", "", block.text)) is not None
            reason = NOT_RUN.search(block.mark)
            assert is_for_cloud == (reason is not None), f"{block}: <!-- not run: needs Google Cloud -->"


def is_like(shown: object, answered: object) -> bool:
    """Return whether an answer has each field that is shown; ids, dates and what has an ellipsis may differ."""
    if isinstance(shown, dict) and isinstance(answered, dict):
        return all(name in answered and is_like(value, answered[name]) for name, value in shown.items())
    if isinstance(shown, list) and isinstance(answered, list):
        return len(answered) >= len(shown) and all(is_like(*pair) for pair in zip(shown, answered, strict=False))
    if isinstance(shown, str) and isinstance(answered, str) and re.search(r"…|^\d{4}-\d\d-\d\d", shown):
        return "…" in shown or datetime.fromisoformat(answered) is not None
    return shown == answered


def needs_process(text: str) -> bool:
    """Return whether a command keeps running: ``test_long_commands.py`` compares what it prints."""
    found = re.search(r"cloudsched (\w+)", text)
    return found is not None and found[1] in KEEP_RUNNING
