"""The data of the pages is what its readers take: JSON is of a model, or like what a command has answered."""

from __future__ import annotations

import configparser
import io
import json
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from dockerfile_parse import DockerfileParser
from tests.doc_blocks import Block, read_blocks
from tests.docs.terminal import find_fault
from tests.docs.test_shell_blocks import read_answers
from tests.harness import ROOT

from cloudsched import Schedule, TaskDraft
from cloudsched.engine.people.webhook_verification import WEBHOOK_KIND

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
        judged = run(judge, "verify", "--man=no", file)
        assert (judged.returncode, judged.stderr) == (0, "")


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.language == "dockerfile"], ids=str)
def test_dockerfiles_start_commands_that_exist(block: Block) -> None:
    """Hadolint finds nothing, and a command is given in the JSON form, which receives the signals."""
    content = block.text if block.text.startswith("FROM") else f"FROM python:3.12-slim\n{block.text}"
    linted = subprocess.run(["hadolint", "-"], input=content, capture_output=True, text=True, check=False)  # noqa: S607
    assert linted.returncode == 0, linted.stdout
    for each in DockerfileParser(fileobj=io.BytesIO(content.encode())).structure:
        if each["instruction"] in {"CMD", "ENTRYPOINT"}:
            program, *words = json.loads(each["value"])
            assert program == "cloudsched"
            assert find_fault(words) is None


def test_the_image_of_a_service_is_built(tmp_path: Path) -> None:
    """Where there is a builder: what it makes starts the service's command."""
    if shutil.which("docker") is None or run("docker", "info").returncode:
        pytest.skip("no builder of images: `docker info` fails")
    (image,) = (each.text for each in BLOCKS if each.language == "dockerfile" and each.page == "serve.md")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path, ROOT).check_returncode()
    (wheel,) = tmp_path.glob("*.whl")
    (tmp_path / "requirements.txt").write_text(f"./{wheel.name}[dev]\n", "utf-8")
    (tmp_path / "handlers.py").write_text("from cloudsched import App\n\napp = App()\n", "utf-8")
    (tmp_path / "Dockerfile").write_text(image.replace("requirements.txt .", "requirements.txt *.whl ./"), "utf-8")
    built = run("docker", "build", "--quiet", tmp_path)
    assert built.returncode == 0, built.stderr
    started = run("docker", "run", "--rm", built.stdout.strip(), "cloudsched", "serve", "--data", "/data")
    assert "Nobody may use this API yet" in started.stdout + started.stderr


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the tests' own commands


@pytest.mark.parametrize(
    "content",
    [{"title": "x", "handlr": "y"}, {"rrule": "FREQ=OFTEN"}, {"events": [{"type": "LOST"}]}, {"unheard": "of"}],
)
def test_wrong_data_is_refused(content: dict[str, Any]) -> None:
    """A field that nobody knows, a rule that is none, and data of no model."""
    with pytest.raises(Exception):  # noqa: B017, PT011 - each model's own error
        test_json_is_of_its_model(Block("page.md", "json", json.dumps(content), 1))


def test_wrong_commands_are_refused(tmp_path: Path) -> None:
    """A unit's or an image's option that does not exist."""
    unit = Block("page.md", "ini", "[Service]\nExecStart=/x/cloudsched worker --queues gpu\n", 1)
    image = Block("page.md", "dockerfile", 'CMD ["cloudsched", "wurker"]\n', 1)
    with pytest.raises(AssertionError):
        test_units_start_commands_that_exist(unit, tmp_path)
    with pytest.raises(AssertionError):
        test_dockerfiles_start_commands_that_exist(image)
