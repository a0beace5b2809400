"""Generators of clients, with their default options, make code of the OpenAPI document that compiles strictly."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.clients.typescript_types import GENERATED
from tests.web.api.node_tools import install_node_tools, run_node_tool

from cloudsched.web.api.openapi import build_document

pytestmark = pytest.mark.timeout(600)
_STRICT = ("--noEmit", "--strict", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022")
_UNCHECKED = "--skipDefaultLibCheck"
"""Leaves out TypeScript's own declarations, and no others."""


def test_typescript_generators_take_every_example(tmp_path: Path) -> None:
    """What openapi-typescript, hey-api and orval make compiles, and their types accept each example of a body.

    The types of our own TypeScript client are those that openapi-typescript makes, schema by schema.
    """
    tools = install_node_tools()
    (tmp_path / "node_modules").symlink_to(tools / "node_modules")
    document = build_document(("anything", "greet"))
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
    shutil.copy(GENERATED, tmp_path / "own.ts")  # of our TypeScript client, by a generator of our own
    imports += ['import type { components } from "./schema";', 'import type * as own from "./own";']
    for name in document["components"]["schemas"]:
        theirs = f"components['schemas']['{name}']"
        uses.append(f"export const o{name} = (given: {theirs}): own.{name} => given;")
        uses.append(f"export const t{name} = (given: own.{name}): {theirs} => given;")
    (tmp_path / "use.ts").write_text("\n".join([*imports, *uses]))
    run_node_tool(tools, "tsc", *_STRICT, "--lib", "es2022,dom,dom.iterable", _UNCHECKED, "use.ts", cwd=tmp_path)


def test_a_generated_python_client_passes_strict_mypy(tmp_path: Path) -> None:
    """Strict mypy finds nothing in what openapi-python-client makes."""
    (tmp_path / "openapi.json").write_text(json.dumps(build_document(None)))
    (tmp_path / "config.yaml").write_text("post_hooks: []\n")  # formatting the code is of no use here
    generate = ["openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none"]
    _run([*generate, "--config", "config.yaml", "--output-path", "generated", "--fail-on-warning"], tmp_path)
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    _run(
        ["mypy", "--strict", "--config-file", "mypy.ini", "--cache-dir", str(tmp_path / "cache"), "generated"], tmp_path
    )


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
