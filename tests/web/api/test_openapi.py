"""The OpenAPI document: valid, complete, and true, as schemathesis finds by asking the running API."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis.configuration import storage_directory
from jsonschema_rs import Draft202012Validator
from pydantic.alias_generators import to_camel
from tests.web.conftest import Call
from werkzeug.wrappers import Request

from cloudsched.domain.documents.task import PublicTask, Task
from cloudsched.drafts.request import DraftRequest
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.api.openapi import build_document
from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.functions import serve_api

CONFIG = Path(__file__).parent / "schemathesis.toml"
EXAMPLES = 10
SECONDS = 600
"""How long schemathesis may take; it takes a twentieth of that on a machine that does nothing else."""

pytestmark = pytest.mark.timeout(SECONDS + 30)


def test_fields_are_described_by_their_docstrings() -> None:
    """Those that a model inherits, too: an installation without its sources would describe none."""
    schemas = build_document(None)["components"]["schemas"]
    description = schemas["DraftRequest"]["properties"]["text"]["description"]
    assert f'"""{description}"""' in inspect.getsource(DraftRequest)
    described = [name for name in PublicTask.model_fields if "description" in _find_property(schemas["Task"], name)]
    assert len(described) > len(PublicTask.model_fields) / 2


def _find_property(schema: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = schema["properties"].get(to_camel(name), {})
    return found


def test_the_api_does_what_its_document_says(sim: Simulation, tmp_path: Path) -> None:
    """No 5xx, no undocumented status, content type or shape, nothing accepted that the document forbids.

    Schemathesis asks each operation of a running API what its document allows, and some that it does not. The API is
    open: web/auth/test_roles.py has what a closed one refuses, and what its document says of that.
    """
    with WebServer(Request.application(lambda request: serve_api(sim.app, request))) as server:
        server.serve()
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run", "--checks=all"]
        options = [f"--max-examples={EXAMPLES}", "--generation-deterministic", "--no-color"]
        done = subprocess.run(  # noqa: S603 - our own words
            [*command, *options, f"http://{server.address}/openapi.json"],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
            cwd=tmp_path,
            env={**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(storage_directory())},  # with tables of Unicode
        )
    assert done.returncode == 0, done.stdout + done.stderr
    count = len(OPERATIONS) - 1  # all but the document itself
    assert re.search(rf"Selected: {count}/{count}\s+Tested: {count}\n", done.stdout), done.stdout


@pytest.mark.parametrize("handlers", [None, ("greet", "report")])
def test_the_document_describes_each_operation_once(handlers: tuple[str, ...] | None) -> None:
    """Each operation is described and answered; each reference leads somewhere; each schema is one."""
    whole = build_document(handlers)
    described = {operation["operationId"] for methods in whole["paths"].values() for operation in methods.values()}
    assert len(described) == len(OPERATIONS)
    assert described == {operation.name for operation in OPERATIONS}
    schemas = whole["components"]["schemas"]
    used = set(_references(whole))
    assert used == set(schemas), "each schema is used, and each that is used is there"
    for schema in schemas.values():
        Draft202012Validator({**schema, "components": whole["components"]})


def test_the_document_omits_the_scheduler_s_own_fields() -> None:
    """Fields for the scheduler are in no schema; handlers are named only where every caller may know them."""
    schemas = build_document(None)["components"]["schemas"]
    assert not {"Run", "Lease", "Backfill", "Ask"} & set(schemas)
    internal = Task.model_fields.keys() - PublicTask.model_fields.keys()
    assert {"runs", "wake_at", "offer", "deferred", "defined_by", "recent_requests"} < internal
    assert not set(map(to_camel, internal)) & set(schemas["Task"]["properties"])
    assert "oh-greet" in json.dumps(build_document(("oh-greet",))["components"]["schemas"]["NewTask"])
    assert "anyOf" not in build_document(None)["components"]["schemas"]["NewTask"]


def test_only_tasks_for_workers_may_name_unregistered_handlers() -> None:
    """Where handlers are named, a new task names one of them, or else the queue of a worker that has it."""
    whole = build_document(("greet",))
    schema = Draft202012Validator({"$ref": "#/components/schemas/NewTask", "components": whole["components"]})
    task = {"owner": "ada", "title": "T"}
    for handler, pull, is_valid in (
        ("greet", None, True),
        ("greet", "gpu", True),
        ("other", "gpu", True),
        ("other", {"queue": "gpu", "skill": "cuda"}, True),
        ("other", None, False),
        ("greet", "g p u", False),
        ("greet", {"skill": "cuda"}, False),
    ):
        assert schema.is_valid({**task, "handler": handler, "pull": pull}) is is_valid, (handler, pull)
    assert not schema.is_valid({**task, "handler": "other"})


def test_the_page_shows_every_operation_without_scripts(call: Call) -> None:
    """The readable page names each operation and schema, and its policy forbids scripts and everything from outside."""
    answer = call("GET", "/docs")
    for operation in OPERATIONS:
        assert f"<code>{operation.path}</code>" in answer.text
    assert "<script" not in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def _references(content: Any) -> list[str]:  # noqa: ANN401 - any JSON
    if isinstance(content, dict):
        own = [content["$ref"].rpartition("/")[2]] if "$ref" in content else []
        return own + [name for value in content.values() for name in _references(value)]
    return [name for value in content for name in _references(value)] if isinstance(content, list) else []
