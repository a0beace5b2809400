"""The OpenAPI document as the tools of its field see it: validators, a linter, and generators of clients."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.clients.typescript_types import GENERATED
from tests.web.api.node_tools import SOURCES, install_node_tools, run_node_tool
from tests.web.callers import MINUTE
from werkzeug.wrappers import Request

from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.api.openapi import build_document
from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.api.parse import validate_model
from cloudsched.web.functions import serve_api

pytestmark = pytest.mark.timeout(600)
_STRICT = ("--strict", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022")
_UNCHECKED = "--skipDefaultLibCheck"
"""Leaves out TypeScript's own declarations, and no others."""


def test_the_document_is_valid_openapi() -> None:
    """openapi-spec-validator finds no error, and each keyword with a number is one of JSON Schema."""
    document = build_document()
    OpenAPIV31SpecValidator(document).validate()
    assert not {"ge", "le", "gt", "lt"} & {key for schema in _iter_objects(document) for key in schema}


def test_no_field_has_a_default() -> None:
    """Generators take the keyword for a promise that a field is there: fields say it in words, parameters have it."""
    for schema in _iter_objects(build_document()["components"]):
        for name, each in schema.get("properties", {}).items():
            assert "default" not in each, name


def test_every_default_and_example_is_valid() -> None:
    """Each default and each example satisfies its schema; the models accept each request example."""
    document = build_document()

    def check(schema: Any, value: object) -> None:  # noqa: ANN401 - any JSON schema
        whole = {"allOf": [schema], "components": document["components"]}
        Draft202012Validator(whole, validate_formats=True).validate(value)

    for schema in _iter_objects(document):
        if "default" in schema and ("type" in schema or "anyOf" in schema or "$ref" in schema):
            check(schema, schema["default"])
        if "example" in schema and "schema" in schema:
            check(schema["schema"], schema["example"])
        for example in schema["examples"].values() if "schema" in schema and "examples" in schema else ():
            check(schema["schema"], example["value"])
    for operation in OPERATIONS:
        body = document["paths"][operation.path][operation.method.lower()].get("requestBody")
        (content,) = body["content"].values() if body else ({"examples": {}},)
        assert bool(content["examples"]) is bool(body), f"{operation.name} has an example of its body"
        for example in content["examples"].values():
            if operation.body_schema is not None and operation.name != "create_task":
                validate_model(operation.body_schema, example["value"])


def test_the_linter_finds_nothing(tmp_path: Path) -> None:
    """Redocly's recommended rules find no error in the document."""
    tools = install_node_tools()
    shutil.copy(SOURCES / "redocly.yaml", tmp_path)
    (tmp_path / "openapi.json").write_text(json.dumps(build_document()))
    report = run_node_tool(tools, "redocly", "lint", "openapi.json", "--format=json", cwd=tmp_path)
    totals = json.loads(report[report.index("{") :])["totals"]
    assert (totals["errors"], totals["warnings"]) == (0, 0), report


@pytest.fixture
def api(sim: Simulation) -> Iterator[str]:
    """Return the URL of a running API with one run for workers of the queue ``gpu``."""
    sim.app.create(owner="ada", title="For workers", handler="greet", payload={"name": "Ada"}, pull="gpu")
    sim.advance(5 * MINUTE)
    with WebServer(Request.application(lambda request: serve_api(sim.app, request))) as server:
        server.serve()
        yield f"http://{server.address}"


@pytest.fixture(scope="module")
def python_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the package of a client that openapi-python-client makes, without a warning."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "openapi.json").write_text(json.dumps(build_document()))
    (folder / "config.yaml").write_text("post_hooks: []\n")  # formatting the code is of no use here
    package = folder / "generated_client"
    generate = ["openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none"]
    _run([*generate, "--config", "config.yaml", "--output-path", str(package), "--fail-on-warning"], folder)
    return package


def test_a_generated_python_client_works(api: str, python_client: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has every operation; it creates, lists and claims tasks, and its classes carry what the API returns."""
    assert {operation.name for operation in OPERATIONS} <= {path.stem for path in (python_client / "api").rglob("*.py")}
    monkeypatch.syspath_prepend(str(python_client.parent))
    try:
        models: Any = importlib.import_module("generated_client.models")
        with importlib.import_module("generated_client").Client(base_url=api) as client:
            draft = models.NewTask(owner="ada", title="From Python", handler="greet", expected_duration=60)
            draft.payload = models.NewTaskPayload.from_dict({"name": "Ada"})
            draft.schedule = models.ScheduleInput(rrule="FREQ=DAILY", timezone="Europe/Paris")
            created = _call("tasks.create_task", client, body=draft)
            assert isinstance(created, models.Task)
            assert (created.status, created.expected_duration) == (models.TaskStatus.ACTIVE, 60)
            page = _call("tasks.list_tasks", client, owner="ada", page_size=10)
            assert {task.title for task in page.tasks} == {"From Python", "For workers"}
            claims = _call("workers.claim", client, queue="gpu", body=models.ClaimRequest(worker="python"))
            assert [claim.task.title for claim in claims.claims] == ["For workers"]
            assert _call("tasks.get_task", client, task_id="absent").status == 404
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "generated_client"]:
            del sys.modules[name]


def _call(operation: str, client: object, **arguments: Any) -> Any:  # noqa: ANN401 - of generated classes
    return importlib.import_module(f"generated_client.api.{operation}").sync(client=client, **arguments)


def _iter_objects(content: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - any JSON
    if isinstance(content, dict):
        yield content
    for value in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        yield from _iter_objects(value)


def test_typescript_generators_take_every_example(tmp_path: Path) -> None:
    """What openapi-typescript, hey-api and orval make compiles, and their types accept each example of a body.

    The types of our own TypeScript client are those that openapi-typescript makes, schema by schema.
    """
    tools = install_node_tools()
    (tmp_path / "node_modules").symlink_to(tools / "node_modules")
    document = build_document()
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    for command in (
        ("openapi-typescript", "openapi.json", "--output", "schema.d.ts"),
        ("openapi-ts", "--input", "openapi.json", "--output", "hey"),
        ("orval", "--input", "openapi.json", "--output", "orval.ts"),
    ):
        run_node_tool(tools, *command, cwd=tmp_path)
    imports = ['import type { paths } from "./schema";', 'import type * as hey from "./hey";']
    imports += ['import type * as orval from "./orval";', 'export * as sdk from "./hey/sdk.gen";']
    uses = [
        f"export const {kind}{number}: {type_} = {value};"
        for number, (path, method, content_type, schema, value) in enumerate(_iter_bodies(document))
        for kind, type_ in {
            "a": f"NonNullable<paths[{path!r}][{method!r}]['requestBody']>['content'][{content_type!r}]",
            "b": f"hey.{schema}",
            "c": f"orval.{schema}",
        }.items()
    ]
    assert len(uses) > 3 * 20
    shutil.copytree(GENERATED.parent, tmp_path / "own")  # our TypeScript client, with types by a generator of our own
    imports += ['import type { components } from "./schema";', 'import type * as own from "./own/api";']
    for name in document["components"]["schemas"]:
        theirs = f"components['schemas']['{name}']"
        uses.append(f"export const o{name} = (given: {theirs}): own.{name} => given;")
        uses.append(f"export const t{name} = (given: own.{name}): {theirs} => given;")
    (tmp_path / "use.ts").write_text("\n".join([*imports, *uses]))
    options = ("--noEmit", *_STRICT, "--lib", "es2022,dom,dom.iterable", _UNCHECKED)
    run_node_tool(tools, "tsc", *options, "use.ts", cwd=tmp_path)


def _run(module: list[str], cwd: Path) -> None:
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", *module], capture_output=True, text=True, check=False, timeout=300, cwd=cwd
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _iter_bodies(document: dict[str, Any]) -> Iterator[tuple[str, str, str, str, str]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for content_type, content in operation.get("requestBody", {}).get("content", {}).items():
                schema = content["schema"]["$ref"].rpartition("/")[2]
                for example in content["examples"].values():
                    yield path, method, content_type, schema, json.dumps(example["value"])
