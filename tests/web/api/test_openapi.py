"""The OpenAPI document: valid, complete, and true, as schemathesis finds by asking the running API."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis.configuration import storage_directory
from jsonschema_rs import Draft202012Validator
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from tests.web.callers import RoleHarness
from werkzeug.wrappers import Request

from cloudsched.domain.documents.policy import RetryPolicy
from cloudsched.domain.documents.task import PublicTask, Task
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.api.openapi import build_document
from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.functions import serve_api

CONFIG = Path(__file__).parent / "schemathesis.toml"
EXAMPLES = 10
SECONDS = 600
"""How long schemathesis may take; it takes a twentieth of that on a machine that does nothing else."""

pytestmark = pytest.mark.timeout(SECONDS + 30)


NAMES_OF_OTHERS = {
    "schemas/Verb": "the ends of paths",
    "TaskPatch/properties/operation": "the ends of paths",
    "schemas/Role": "as keys and settings have them",
    "schemas/SenderRole": "as handlers name them",
    "schemas/Requesters": "as handlers name them",
    "SourceMessage/properties/role": "of language models",
    "Turn/properties/role": "of language models",
    "schemas/HealthStatus": "as probes look for it",
    "ExecutionWebhook/properties/type": "of Standard Webhooks",
    "/per/": "durations of ISO 8601",
    "orderBy": "fields, and a direction as SQL has it",
    **dict.fromkeys(("validateOnly", "replace", "everything", "calls", "receipt"), "true and false, as JSON has them"),
}
"""Places of sets whose members are names that have their spelling elsewhere."""


def list_sets(part: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the members of closed sets of texts below a part of the document, each with its place."""
    if isinstance(part, list):
        for each in part:
            yield from list_sets(each, f"{path}/{each.get('name', '')}" if isinstance(each, dict) else path)
    elif isinstance(part, dict):
        members = part["enum"] if isinstance(part.get("enum"), list) else []
        yield from ((path, str(each)) for each in members if each is not None)
        for name, each in part.items():
            if name not in {"example", "examples", "default"}:
                yield from list_sets(each, f"{path}/{name}")


def test_closed_sets_have_one_casing() -> None:
    """UPPER_SNAKE, but for names that have their spelling elsewhere."""
    wrong = {
        f"{path}: {member}"
        for path, member in list_sets(build_document(""))
        if not re.fullmatch("[A-Z]+(_[A-Z]+)*", member) and not any(name in path for name in NAMES_OF_OTHERS)
    }
    assert wrong == set()


def test_the_api_does_what_its_document_says(roles: RoleHarness, tmp_path: Path) -> None:
    """No 5xx, no undocumented status, content type or shape, nothing accepted that the document forbids.

    Schemathesis asks each operation of a running API what its document allows, and some that it does not, with an
    admin's key. web/auth/test_roles.py has what is refused without one.
    """
    with WebServer(Request.application(lambda request: serve_api(roles.sim.app, request))) as server:
        server.room.close()  # an answer that waits for work would be a slow one
        server.serve()
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run", "--checks=all"]
        command += ["--exclude-checks=ignored_auth"]  # a key counts whatever token is beside it
        options = [f"--max-examples={EXAMPLES}", "--generation-deterministic", "--no-color"]
        options += [f"--header={name}: {value}" for name, value in roles.headers("admin").items()]
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


def test_the_document_describes_each_operation_once() -> None:
    """Each operation is described and answered; each reference leads somewhere; each schema is one."""
    whole = build_document()
    described = {operation["operationId"] for methods in whole["paths"].values() for operation in methods.values()}
    assert len(described) == len(OPERATIONS)
    assert described == {operation.name for operation in OPERATIONS}
    schemas = whole["components"]["schemas"]
    used = set(_references(whole))
    assert used == set(schemas), "each schema is used, and each that is used is there"
    for schema in schemas.values():
        Draft202012Validator({**schema, "components": whole["components"]})


@pytest.mark.parametrize(("name", "model"), [("NewTask", TaskDraft), ("RetryPolicy", RetryPolicy)])
def test_a_length_of_time_says_its_unit(name: str, model: type[BaseModel]) -> None:
    """A number without one would be read as minutes or milliseconds."""
    shown = build_document()["components"]["schemas"][name]["properties"]
    lengths = [
        to_camel(field) for field, about in model.model_fields.items() if timedelta in _list_kinds(about.annotation)
    ]
    assert len(lengths) > 1
    assert not [each for each in lengths if "seconds" not in json.dumps(shown[each])]


def _list_kinds(annotation: Any) -> set[Any]:  # noqa: ANN401 - a type, or what typing makes of one
    return {annotation}.union(*map(_list_kinds, get_args(annotation)))


def test_the_document_omits_the_scheduler_s_own_fields() -> None:
    """Fields for the scheduler are in no schema."""
    schemas = build_document()["components"]["schemas"]
    assert not {"Run", "Lease", "Backfill", "Ask"} & set(schemas)
    internal = Task.model_fields.keys() - PublicTask.model_fields.keys()
    assert {"runs", "wake_at", "offer", "deferred", "defined_by", "recent_requests"} < internal
    assert not set(map(to_camel, internal)) & set(schemas["Task"]["properties"])


def _references(content: Any) -> list[str]:  # noqa: ANN401 - any JSON
    if isinstance(content, dict):
        own = [content["$ref"].rpartition("/")[2]] if "$ref" in content else []
        return own + [name for value in content.values() for name in _references(value)]
    return [name for value in content for name in _references(value)] if isinstance(content, list) else []
