"""Every page's Python is run by a test, and the commands and requests of the pages exist.

Python runs: on the pages of `RUN_ELSEWHERE` by the test that is named there, on all others by ``test_page_code.py``.
``tests/docs`` says who reads the other blocks, and types all commands.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
from tests.architecture import test_page_code
from tests.cases import try_each
from tests.doc_blocks import Block, read_blocks

from cloudsched.cli.main import cloudsched
from cloudsched.web.api.operations import OPERATIONS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [block for page in PAGES for block in read_blocks(page)]
RUN_ELSEWHERE = {
    "README.md": "architecture/test_readme.py",
    "tour.md": "architecture/test_readme.py",
    **dict.fromkeys(("workflow.md", "durable-operations.md", "change-code.md"), "architecture/test_durable_doc.py"),
    "async.md": "architecture/test_async_doc.py",
    "sandbox.md": "architecture/test_sandbox_doc.py",
    "workers.md": "stories/test_workers_guide.py",
    "when.md": "language/test_language_doc.py",
    "mounting.md": "web/mounts.py",
    "from-celery.md": "recipes/test_moving.py",
    "from-apscheduler.md": "recipes/test_moving.py",
    "from-your-own.md": "recipes/test_own_queues.py",
    "fastapi.md": "recipes/test_web_frameworks.py",
    "flask.md": "recipes/test_web_frameworks.py",
    "django.md": "recipes/test_django.py",
    "beside-serve.md": "recipes/test_beside_serve.py",
    "embedded.md": "embedded_services.py",
    "database.md": "recipes/test_sqlalchemy.py",
    "outbox.md": "recipes/test_outbox.py",
    "pubsub.md": "recipes/test_pushed_events.py",
    **{page.name: "stories/test_tutorial.py" for page in (ROOT / "docs" / "tutorial").glob("*.md")},
}
"""Who runs a page's Python."""
ARGUMENTS_FOLLOW = ("emulator",)
"""Commands that hand their arguments on to a parser of their own."""


@try_each("page", sorted({block.page for block in BLOCKS if block.language == "python"}))
def test_the_python_of_every_page_is_run(page: str) -> None:
    """By a test that names the page, which somebody who adds a page has to write."""
    if page in RUN_ELSEWHERE:
        text = (ROOT / "tests" / RUN_ELSEWHERE[page]).read_text("utf-8")
        assert page in text or "tutorial" in text
    else:
        assert page in test_page_code.PAGES, f"{page} has Python that no test runs"


@try_each("block", [each for each in BLOCKS if each.language in {"sh", "console", "bash"}])
def test_commands_and_their_options_exist(block: Block) -> None:
    """An option that was renamed is renamed on the pages, too."""
    for words in list_commands(block):
        context = click.Context(cloudsched)
        command: click.Command = cloudsched
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            found = command.get_command(context, words.pop(0))
            assert found is not None, f"{block}: {words}"
            command = found
        known = {option for each in command.get_params(context) for option in (*each.opts, *each.secondary_opts)}
        used = {word.partition("=")[0] for word in words if word.startswith("--") and len(word) > 2}
        if command.name not in ARGUMENTS_FOLLOW:
            assert used <= known, f"{block}: {used - known}"


@try_each("block", [each for each in BLOCKS if "curl" in each.text])
def test_requests_are_those_of_the_api(block: Block) -> None:
    """Each path below ``/v1`` is one of an operation."""
    patterns = [re.sub(r"\\\{\w+\\\}", "[^/:?]+", re.escape(each.path)) for each in OPERATIONS]
    for path in re.findall(r"(?:8080|\$URL|\$API)(/v1/[^\s'\"?$]+)", block.text):
        shown = re.sub(r"\$\w+", "x", path)
        assert any(re.fullmatch(pattern, shown) for pattern in patterns), f"{block}: {path}"


def list_commands(block: Block) -> list[list[str]]:
    """Return the words behind `cloudsched` of each such command in a block."""
    lines = block.text.replace("\\\n", " ").splitlines()
    found = []
    for line in lines:
        for part in re.split(r"\s*(?:&&|\|\||[|;&])\s*", re.sub(r"\s#.*$", "", line.removeprefix("$ "))):
            try:
                words = shlex.split(part)
            except ValueError:  # a quotation over several lines: a request's body
                continue
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words.pop(0)
            if words and words[0] == "cloudsched":
                found.append(words[1 : words.index("--")] if "--" in words else words[1:])
    return found
