"""The data of the pages is what its readers take: JSON is of a model, or like what a command has answered."""

from __future__ import annotations

import configparser
import io
import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dockerfile_parse import DockerfileParser
from tests.doc_blocks import Block, read_blocks
from tests.docs.terminal import find_fault
from tests.docs.test_shell_blocks import read_answers
from tests.harness import ROOT, run_to_end

from cloudsched import Schedule, TaskDraft
from cloudsched.domain.documents.receipt import Receipt
from cloudsched.people.webhook_verification import WEBHOOK_KIND

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted(ROOT.glob("infra/**/*.md"))
BLOCKS = [block for page in PAGES for block in read_blocks(page) if block.language in {"json", "ini", "dockerfile"}]


def check_mcp_servers(content: dict[str, Any]) -> None:
    """Accept what agents read: the command that they start exists, with its options."""
    for server in content["mcpServers"].values():
        assert server["command"] == "cloudsched"
        assert find_fault(server["args"]) is None
        assert all(name.startswith("CLOUDSCHED_") for name in server["env"])


def check_verification(content: dict[str, Any]) -> None:
    """Accept what a webhook is sent before it gets anything else: the fields of the code's own message."""
    assert content["type"] == WEBHOOK_KIND
    assert set(content) == {"type", "timestamp", "data"}
    assert set(content["data"]) == {"title", "body", "challenge"}


MODELS: dict[str, Callable[[dict[str, Any]], object]] = {
    "mcpServers": check_mcp_servers,
    "title": TaskDraft.model_validate,
    "rrule": Schedule.model_validate,
    "type": check_verification,
    "scheduled": Receipt.model_validate,
}
"""Who reads a JSON block, by its first field."""


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.language == "json"], ids=str)
def test_json_is_of_its_model(block: Block) -> None:
    """A field that is renamed is renamed on the pages. Answers of commands are compared where these are run."""
    content = json.loads(block.text)
    if any(block == answer for page in PAGES for answer in read_answers(page)):
        return
    first = next(iter(content))
    assert first in MODELS, f"{block}: nothing reads this; add its model to MODELS"
    MODELS[first](content)


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.language == "ini"], ids=str)
def test_units_start_commands_that_exist(block: Block, tmp_path: Path) -> None:
    """Systemd itself, where it is installed, accepts each line, and what is started is a command with its options."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign] # systemd tells capitals apart
    unit.read_string(block.text)
    assert set(unit.sections()) <= {"Unit", "Service", "Install"}
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/cloudsched")
    assert find_fault(words) is None
    if judge := shutil.which("systemd-analyze"):
        file = tmp_path / "unit.service"
        file.write_text(block.text.replace(program, "/bin/true"), "utf-8")
        judged = run_to_end([judge, "verify", "--man=no", file])
        assert (judged.returncode, judged.stderr) == (0, "")


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.language == "dockerfile"], ids=str)
def test_dockerfiles_start_commands_that_exist(block: Block) -> None:
    """Hadolint finds nothing, and a command is given in the JSON form, which receives the signals."""
    content = block.text if block.text.startswith("FROM") else f"FROM python:3.12-slim\n{block.text}"
    linted = run_to_end(["hadolint", "-"], input=content)
    assert linted.returncode == 0, linted.stdout
    for each in DockerfileParser(fileobj=io.BytesIO(content.encode())).structure:
        if each["instruction"] in {"CMD", "ENTRYPOINT"}:
            program, *words = json.loads(each["value"])
            if program == "tini":  # which starts what `CMD` names
                continue
            if program == "functions-framework":  # which takes what it needs from the environment
                assert not words
                continue
            assert program == "cloudsched"
            assert find_fault(words) is None
