"""The TypeScript client: its types are the API's, its verbs the Python client's, and it works with a local stack."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.clients.conftest import find_node, run_node
from tests.doc_blocks import read_blocks

from cloudsched.cli.schema import declare_payloads

ROOT = Path(__file__).parents[2]
PAGE_STANDINS = """
declare function getAuth(): { readonly currentUser: null };
declare const signal: AbortSignal;
declare function render(tasks: unknown): void;
"""
"""What the pages' TypeScript has from its app."""
OPTIONS = ("--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--skipDefaultLibCheck")


@pytest.mark.timeout(600)
def test_it_compiles_for_its_users(package: Path) -> None:
    """Payloads have their handlers' types, with both kinds of modules."""
    user = package / "user"
    (user / "node_modules").mkdir(parents=True)
    (user / "node_modules/cloudsched").symlink_to(package)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "times": {"type": "integer"}},
    }
    payloads = declare_payloads({"greet": {**schema, "required": ["name"]}, "echo": None})
    tsc = str(package / "node_modules/typescript/bin/tsc")
    for kind in ("module", "commonjs"):
        folder = user / kind
        folder.mkdir()
        (folder / "package.json").write_text(json.dumps({"type": kind}))
        (folder / "payloads.ts").write_text(payloads)
        shutil.copy(package / "tests/types.ts", folder)
    files = ("module/types.ts", "commonjs/types.ts")
    run_node(user, tsc, *OPTIONS, "--lib", "es2022,dom", *files)


@pytest.mark.timeout(600)
def test_the_pages_typescript_compiles(package: Path, tmp_path: Path) -> None:
    """Each block of the pages is a module that is type-checked against the built package."""
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/cloudsched").symlink_to(package)
    files = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in read_blocks(page):
            if block.language == "ts":
                files.append(f"{page.stem}-{block.line}.ts")
                (tmp_path / files[-1]).write_text(PAGE_STANDINS + block.text, "utf-8")
    assert files
    tsc = str(package / "node_modules/typescript/bin/tsc")
    run_node(tmp_path, tsc, *OPTIONS, "--lib", "es2022,dom", *files)


@pytest.mark.timeout(600)
def test_it_works_with_a_local_stack(package: Path, tmp_path: Path) -> None:
    """Its own tests pass, with Node's test runner and what `cloudsched dev` starts."""
    app = str(Path(__file__).with_name("typescript_app.py"))
    stack = [sys.executable, "-m", "cloudsched", "dev", "--store", "sqlite", "--handlers", app]
    node = [find_node(), "--test", "--test-reporter=tap", str(package / "tests")]
    done = subprocess.run(  # noqa: S603 - our own command
        [*stack, "--", *node], capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert int(re.findall(r"^# pass (\d+)$", done.stdout, re.MULTILINE)[0]) >= 19
