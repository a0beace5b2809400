"""Imports go down only, vendors stay at the edge, and one module reads the environment."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "cloudsched"
MODULES = sorted(path.relative_to(SOURCE).with_suffix("").as_posix() for path in SOURCE.rglob("*.py"))

BELOW = {
    "errors": set[str](),
    "domain": {"errors"},
    "language": {"domain", "errors"},
    "config": {"errors"},
    "engine": {"domain", "errors"},
    "adapters": {"engine", "domain", "errors"},
    "emulator": set[str](),
    "client": {"domain", "errors"},
    "dashboard": {"client", "errors"},
    "drafts": {"engine", "language", "domain", "errors"},
    "runtime": {"adapters", "drafts", "engine", "language", "domain", "config", "errors"},
    "app": {"runtime", "drafts", "language", "engine", "domain", "errors"},
    "web": {"app", "runtime", "drafts", "language", "adapters", "engine", "domain", "config", "errors"},
    "worker": {"app", "client", "engine", "domain", "errors"},
    "testing": {"app", "adapters", "engine", "domain", "config", "errors", "emulator"},
    "local": {"app", "web", "adapters", "engine", "domain", "config", "errors", "emulator", "client", "dashboard"},
}
"""Which parts a part may import; the command line may import all."""
EXCEPTIONS = {
    ("client/__init__", "cloudsched.config.extras.require_extra"),
    ("adapters/google/id_tokens", "cloudsched.config.settings.is_firebase_emulated"),
    ("local/examples", "cloudsched.App"),
    ("local/examples", "cloudsched.Context"),
    ("local/import_errors", "cloudsched.errors"),
}
"""Google's library reads the environment by itself; whether that fits is asked where the environment is read. The
example is written as a user would write it. The client says which extra it needs."""
VENDORS = {
    "google",
    "grpc",
    "aiohttp",
    "werkzeug",
    "flask",
    "functions_framework",
    "cheroot",
    "proto",
    "requests",
    "_quickjs",
}
EDGES = {"adapters", "emulator", "web", "client", "local", "dashboard"}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse((SOURCE / f"{module}.py").read_text("utf-8"))


def imports(module: str) -> set[str]:
    """Return the dotted names that a module imports, at its top, inside functions or for types."""
    found: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def part(name: str) -> str:
    """Return which part of the package a dotted name or a path belongs to; "" for the package itself."""
    steps = name.replace("/", ".").split(".")
    steps = steps[1:] if steps[0] == "cloudsched" else steps
    return steps[0] if steps and steps[0] != "__init__" else ""


@pytest.mark.parametrize("module", [name for name in MODULES if part(name) in BELOW])
def test_imports_go_down_only(module: str) -> None:
    """Web and testing → app → engine and adapters → domain → errors; the emulator knows none of the rest."""
    own = part(module)
    for name in imports(module):
        if name.split(".")[0] == "cloudsched":
            assert part(name) in BELOW[own] | {own} or (module, name) in EXCEPTIONS, f"{module} imports {name}"


@pytest.mark.parametrize("module", [name for name in MODULES if part(name) == "adapters"])
def test_adapters_do_not_know_each_other(module: str) -> None:
    """An adapter is a module or a folder; it imports no other, but for what Google's adapters share."""
    own = module.split("/")[1]
    for name in imports(module):
        if name.startswith("cloudsched.adapters."):
            assert name.split(".")[2] in {own, "google"}, f"{module} imports {name}"


@pytest.mark.parametrize("module", MODULES)
def test_only_the_edges_name_a_vendor(module: str) -> None:
    """Adapters, emulator and web may import what Google and others make; domain and engine work without it."""
    if part(module) in BELOW and part(module) not in EDGES:
        assert not {name for name in imports(module) if name.split(".")[0] in VENDORS}


@pytest.mark.parametrize("module", [name for name in MODULES if part(name) in {"domain", "engine"}])
def test_the_core_is_given_its_time(module: str) -> None:
    """Domain and engine ask only the clock that they are given, and never sleep; the domain draws no chance."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"utcnow", "today", "sleep", "monotonic", "perf_counter"}, f"{module}:{node.lineno}"
            is_system_now = node.attr == "now" and isinstance(node.value, ast.Name) and node.value.id == "datetime"
            assert not is_system_now, f"{module}:{node.lineno} reads the system's clock"
    if part(module) == "domain":
        assert not {"random", "secrets", "time", "threading", "sqlite3"} & imports(module)


@pytest.mark.parametrize("module", MODULES)
def test_only_config_reads_the_environment(module: str) -> None:
    """Settings come from one place; a process that is started with some gets a copy, and reads none of them."""
    if module == "config/settings":
        return
    for node in ast.walk(tree(module)):
        reads = isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}
        is_os = reads and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
        assert not is_os or module in MAY_HAND_ON, f"{module}:{getattr(node, 'lineno', 0)} reads the environment"
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            assert not {"environ", "getenv"} & {alias.name for alias in node.names}, module


MAY_HAND_ON: set[str] = set()
"""Modules that hand the environment on to a process which they start."""


@pytest.mark.parametrize("module", MODULES)
def test_a_file_is_one_idea(module: str) -> None:
    """No file is over 400 lines, and none is called after what it is instead of what it does."""
    assert len((SOURCE / f"{module}.py").read_text("utf-8").splitlines()) <= 400
    assert module.rpartition("/")[2] not in {"utils", "common", "helpers", "base", "manager", "models", "misc"}
    assert module.count("/") <= 2, "rooms are one level deep"


def _targets(module: str) -> set[str]:
    """Return the modules of the package that a module imports, typing-only imports included."""
    known = {name.removesuffix("/__init__").replace("/", "."): name for name in MODULES}
    found = set()
    for name in imports(module):
        inside = name.removeprefix("cloudsched.") if name.startswith("cloudsched.") else ""
        target = known.get(inside) or known.get(inside.rpartition(".")[0])
        if inside and target:
            found.add(target)
    return found - {module, "__init__"}


def test_no_module_imports_itself_by_a_detour() -> None:
    """There is no import circle, not even one of typing-only imports: every module can be read after those it needs."""
    waiting = {module: _targets(module) for module in MODULES}
    while ready := {module for module, targets in waiting.items() if not targets & waiting.keys()}:
        waiting = {module: targets for module, targets in waiting.items() if module not in ready}
    assert not waiting, f"these import each other, or one that does: {sorted(waiting)}"


def test_folders_answer_where() -> None:
    """The top level is short, and a room says in its docstring what lives there and what it may import."""
    top = [path.name for path in SOURCE.iterdir() if path.name != "__pycache__"]
    assert len(top) <= 20
    assert {name for name in top if name.endswith(".py")} == {"__init__.py", "__main__.py", "app.py", "errors.py"}
    for path in SOURCE.rglob("__init__.py"):
        if path.parent != SOURCE:
            sentences = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").count(".")
            assert sentences >= 2, f"{path} does not say what lives there"


NOUNS_IN_ING = {"meaning", "planning", "tracing"}
"""Words of the field."""


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_a_noun_or_a_verb(module: str) -> None:
    """No module is called by a gerund, but for words of the field."""
    name = module.rpartition("/")[2]
    assert not name.endswith("ing") or name in NOUNS_IN_ING


def _modules_after(statement: str) -> set[str]:
    """Return what a fresh interpreter has imported after a statement."""
    code = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return set(run.stdout.split())


def test_importing_the_package_costs_nothing() -> None:
    """`import cloudsched` brings neither pydantic nor any vendor along: names are imported when they are used."""
    loaded = _modules_after("import cloudsched")
    assert not {"pydantic", "google.cloud.firestore", "google.protobuf", "grpc", "werkzeug", "aiohttp"} & loaded
    assert not {"_quickjs", "cloudsched.adapters.quickjs.interpreter"} & loaded


def test_an_app_that_uses_no_cloud_does_not_import_it() -> None:
    """Defining handlers, and testing them, needs neither Google's clients nor a web server."""
    loaded = _modules_after("import cloudsched.app, cloudsched.testing.simulation")
    assert not {"google.cloud.firestore_v1", "google.cloud.tasks_v2", "grpc", "aiohttp", "flask", "dateutil"} & loaded
    assert not {"_quickjs", "cloudsched.adapters.quickjs.interpreter"} & loaded
