"""Imports go down only, vendors stay at the edge, and one module reads the environment."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection
from functools import cache
from importlib import import_module

from tests.architecture.picture import DOORS, KERNEL, SATELLITES, SOURCE, find_imports, package_of, read_modules
from tests.cases import try_each

from cloudsched.features.table import FEATURES, find_place
from cloudsched.web.api.operation import find_operations

MODULES = sorted(read_modules())
BELOW = {
    "errors": set[str](),
    "domain": {"errors"},
    "config": {"errors"},
    "engine": {"domain", "errors"},
    "adapters": {"engine", "domain", "errors"},
    "client": {"domain", "errors"},
    "runtime": {"adapters", "engine", "domain", "config", "errors"},
    "app": {"client", "runtime", "engine", "domain", "config", "errors"},
    "web": {"app", "client", "runtime", "adapters", "engine", "domain", "config", "errors"},
}
"""Which packages of the kernel each one may import. All may look into the table of features."""
ALONE = {
    "emulator": set[str](),
    "language": {"domain.schedules", "domain.recurrence", "errors"},
    "dashboard": {"client", "domain", "errors"},
}
"""Satellites that are usable alone, or that see no more than any user of the API. Others may import the kernel."""
OUTSIDE = {"language": {"dateutil"}}
"""What a package may import besides Python's own library and us, if it needs little."""
EXCEPTIONS = {
    ("client/__init__", "cloudsched.config.imports.require_extra"),
    ("adapters/google/id_tokens", "cloudsched.config.settings.is_firebase_emulated"),
    ("adapters/firestore/own_client", "cloudsched.config.settings.Settings"),
    ("emulator/api/protos", "cloudsched.adapters.google.protobuf.build_messages"),
    *(
        ("emulator/http/server", f"cloudsched.domain.local_requests.{name}")
        for name in ("find_detour", "find_foreign_name", "find_foreign_page", "is_loopback", "read_host_name")
    ),
}
"""Google's library reads the environment by itself; whether that fits is asked where the environment is read. A
`TaskReference` is made without an app, and finds its task as one would. The client says which extra it needs. Which
requests come from this machine is one rule for all servers, the emulator included, and messages are built from tables
in one way."""
PAGES = {row.pages.partition(":")[0].removeprefix("cloudsched.").replace(".", "/") for row in FEATURES if row.pages}
"""Modules with pages of features. Only the dashboard imports them, so they may import it."""
TABLES = {"features.table", "features.fields"}
"""What all but packages that need little may look into."""
VENDORS = {
    "google",
    "grpc",
    "aiohttp",
    "werkzeug",
    "flask",
    "functions_framework",
    "waitress",
    "proto",
    "requests",
    "_quickjs",
    "django",
    "sqlalchemy",
}
EDGES = {
    "adapters",
    "emulator",
    "web",
    "client",
    "local",
    "dashboard",
    "outbox",
    "people",
    "scripts",
    "drafts",
    "agents",
    "features",
}
"""The packages that have to do with the outside. Drafts talk to language models."""


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(read_modules()[module]))


@cache
def imports(module: str) -> frozenset[str]:
    """Return the dotted names that a module imports, at its top, inside functions or for types."""
    found: set[str] = set()
    for node in nodes(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def part(name: str) -> str:
    """Return which part of the package a dotted name or a path belongs to; "" for the package itself."""
    steps = name.replace("/", ".").split(".")
    steps = steps[1:] if steps[0] == "cloudsched" else steps
    return steps[0] if steps and steps[0] != "__init__" else ""


def allowed(package: str) -> set[str]:
    """Return the packages that one may import."""
    if package in BELOW:
        return BELOW[package]
    if package in ALONE:
        return ALONE[package]
    if package == "features":
        return {*KERNEL, *DOORS}  # the latter for its commands
    return {*KERNEL, *SATELLITES, *DOORS, "features"}


def is_inside(name: str, places: Collection[str]) -> bool:
    """Return whether a dotted name is that of a place in the package, or of what is in one."""
    return f"{name}.".startswith(tuple(f"cloudsched.{place}." for place in places))


def modules_of(*parts: str) -> list[str]:
    """Return the modules of these parts; there are some."""
    found = [module for module in MODULES if part(module) in parts]
    assert found, parts
    return found


@try_each("package", sorted({*BELOW, *ALONE, "features"}))
def test_imports_go_down_only(package: str) -> None:
    """The kernel imports what is below, and no satellite or feature, not even for types: it asks their table."""
    assert not [
        f"{module} imports {name}"
        for module in modules_of(package)
        for name in imports(module)
        if name.split(".")[0] == "cloudsched"
        and not is_inside(name, allowed(package) | {package})
        and not (package not in OUTSIDE and is_inside(name, TABLES))
        and (module, name) not in EXCEPTIONS
        and not (module in PAGES and part(name) == "dashboard")
    ]


def test_what_needs_little_imports_little_from_outside() -> None:
    """A package that anybody may use for itself needs Python's own library, and what its row of the table has."""
    assert not [
        f"{module} imports {name}"
        for package, few in OUTSIDE.items()
        for module in modules_of(package)
        for name in imports(module)
        if name.split(".")[0] not in {"cloudsched", *few, *sys.stdlib_module_names}
    ]


def test_satellites_do_not_know_each_other() -> None:
    """Each can be taken out alone: only what has the same row of the table may be imported."""
    assert not [
        f"{module} imports {target}"
        for module in modules_of(*SATELLITES)
        for target in find_imports(module)
        if not (module in PAGES and package_of(target) == "dashboard")
        if package_of(target) in SATELLITES and SATELLITES[package_of(target)] is not SATELLITES[package_of(module)]
    ]


def test_every_place_of_the_table_is_there() -> None:
    """What a row names is imported, and every folder that a row names exists."""
    for feature in FEATURES:
        assert all((SOURCE / folder / "__init__.py").is_file() for folder in feature.folders), feature.name
        places = [feature.wiring, feature.settings, *feature.optional_handlers, *feature.records, *feature.options]
        places += [place for row in feature.handlers for place in (row.run, row.check)]
        places += [row.place for row in feature.commands]
        places += [feature.pages, feature.doctor]
        assert all(find_place(place) for place in places if place), feature.name
        assert all(find_operations(import_module(module)) for module in feature.operations), feature.name


def test_adapters_do_not_know_each_other() -> None:
    """An adapter is a module or a folder; it imports no other, but for what Google's adapters share."""
    assert not [
        f"{module} imports {name}"
        for module in modules_of("adapters")
        for name in imports(module)
        if name.startswith("cloudsched.adapters.") and name.split(".")[2] not in {module.split("/")[1], "google"}
    ]


def test_only_the_edges_name_a_vendor() -> None:
    """Adapters, emulator and web may import what Google and others make; domain and engine work without it."""
    assert not [
        f"{module} imports {name}"
        for module in modules_of(*({package_of(module) for module in MODULES} - EDGES - {"__init__", "__main__"}))
        for name in imports(module)
        if name.split(".")[0] in VENDORS
    ]


def test_the_core_is_given_its_time() -> None:
    """Domain and engine ask only the clock that they are given, and never sleep; the domain draws no chance."""
    assert not [
        f"{module}:{node.lineno} asks {node.attr}"
        for module in modules_of("domain", "engine", "features")
        for node in nodes(module)
        if isinstance(node, ast.Attribute) and _asks_the_time(node)
    ]
    chance = {"random", "secrets", "time", "threading", "sqlite3"}
    assert not [f"{module} imports {name}" for module in modules_of("domain") for name in chance & imports(module)]


def _asks_the_time(node: ast.Attribute) -> bool:
    is_system_now = node.attr == "now" and isinstance(node.value, ast.Name) and node.value.id == "datetime"
    return is_system_now or node.attr in {"utcnow", "today", "sleep", "monotonic", "perf_counter"}


def test_only_config_reads_the_environment() -> None:
    """Settings come from one place, and what a supervisor says to a process from another; children get copies."""
    assert not [
        f"{module}:{getattr(node, 'lineno', 0)} reads the environment"
        for module in MODULES
        if module not in {"config/settings", "config/supervisor"}
        for node in nodes(module)
        if _reads_the_environment(node)
    ]


def _reads_the_environment(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}:
        return isinstance(node.value, ast.Name) and node.value.id == "os"
    if isinstance(node, ast.ImportFrom) and node.module == "os":
        return bool({"environ", "getenv"} & {alias.name for alias in node.names})
    return False


def _find_circles(targets: dict[str, set[str]]) -> list[str]:
    """Return those that import each other: what is left when all are read after, or before, those they need."""
    waiting = _read_in_order(targets)
    return sorted(_read_in_order({name: {each for each in waiting if name in waiting[each]} for name in waiting}))


def _read_in_order(targets: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return those that cannot be read after all that they need."""
    waiting = targets
    while ready := {name for name, needed in waiting.items() if not needed & waiting.keys()}:
        waiting = {name: needed for name, needed in waiting.items() if name not in ready}
    return waiting


def test_no_module_imports_itself_by_a_detour() -> None:
    """There is no import circle, not even one of typing-only imports: every module can be read after those it needs."""
    assert not _find_circles({module: {*find_imports(module)} for module in MODULES})


def room_targets(layer: str) -> dict[str, set[str]]:
    """Return which rooms of its layer each room imports, typing-only imports included."""
    found: dict[str, set[str]] = {}
    for module in modules_of(layer):
        room = [*module.split("/"), ""][1]
        targets = {target.split("/")[1] for target in find_imports(module) if target.startswith(f"{layer}/")}
        found.setdefault(room, set()).update(targets - {room})
    return found


@try_each("layer", sorted(KERNEL.keys() | SATELLITES.keys() | DOORS.keys()))
def test_no_room_imports_itself_by_a_detour(layer: str) -> None:
    """The rooms of a layer have an order, so that each can be read after those it needs."""
    assert not _find_circles(room_targets(layer))


def _modules_after(statement: str) -> set[str]:
    """Return what a fresh interpreter has imported after a statement."""
    code = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return set(run.stdout.split())


def test_reading_a_phrase_brings_no_tasks_along() -> None:
    """Words become schedules without the documents of tasks, the engine, or any feature."""
    read = 'read("the working day before the 15th", now=datetime(2027, 1, 4, tzinfo=UTC), timezone="UTC")'
    loaded = _modules_after(f"from datetime import *\nfrom cloudsched.language import read\n{read}")
    ours = {name.removeprefix("cloudsched.").partition(".")[0] for name in loaded if name.startswith("cloudsched.")}
    assert ours == {"language", "domain", "errors"}
    assert not [name for name in loaded if is_inside(name, {"domain.documents", "domain.transitions"})]


def test_importing_the_package_costs_nothing() -> None:
    """`import cloudsched` brings neither pydantic nor any vendor along: names are imported when they are used."""
    loaded = _modules_after("import cloudsched")
    assert not {"pydantic", "google.cloud.firestore", "google.protobuf", "grpc", "werkzeug", "aiohttp"} & loaded
    assert not {"_quickjs", "cloudsched.scripts.quickjs.interpreter"} & loaded


def test_an_app_that_uses_no_cloud_does_not_import_it() -> None:
    """Defining handlers, and testing them, needs neither Google's clients nor a web server."""
    loaded = _modules_after("import cloudsched.app, cloudsched.testing.simulation")
    assert not {"google.cloud.firestore_v1", "google.cloud.tasks_v2", "grpc", "aiohttp", "flask", "dateutil"} & loaded
    assert not {"_quickjs", "cloudsched.scripts.quickjs.interpreter"} & loaded
