"""Each install brings what its part of the package imports, and nothing else."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.installs import ROOT, SOURCE, declared, declared_alone, packages, providers

MODULES = sorted(path.relative_to(SOURCE).with_suffix("").as_posix() for path in SOURCE.rglob("*.py"))
LOCAL_TOOLS = {"aiohttp", "pygments", "quickjs-ng", "rich", "waitress", "yarl"}
"""What no deployed function imports."""
GOOGLE_CLIENTS = {"firebase-admin", "google-auth", "google-cloud-firestore", "grpcio", "protobuf"}
"""What only a deployment imports."""
PYTEST_PLUGINS = {"testing/pytest_plugin"}
"""Only pytest imports it."""
FOR_WORKERS = re.compile(
    r"client|worker|config/imports$|(__main__|cli/(__init__|apply|job_files|log_output|main|operators|options)"
    r"|cli/(signals|worker)|outbox/command"
    r"|local/(__init__|app_loader|environment_file|untrusted_text))$"
)
FOR_AGENTS = re.compile(r"agents/(command|server)$")
FOR_DEVELOPMENT = re.compile(r"cli/demo_report$|local/stack$|emulator/(?!__init__$|model/|runtime/(__init__|clock)$)")
FOR_SERVERS = re.compile(r"cli/|dashboard/|local/|(features/)?\w+/command$")
FOR_GOOGLE = re.compile(
    r"adapters/(firestore/(?!__init__$|emulator$)|google/(?!__init__$|backoff$)|blobs$)|people/senders/fcm$|features/locks/firestore$|drafts/language_models$"
)
FRAMEWORKS = {
    "agents/adk": "adk",
    "agents/adk_steps": "adk",
    "agents/langgraph": "langgraph",
    "agents/openai_agents": "openai-agents",
    "agents/pydantic_ai": "pydantic-ai",
}
EXTRAS = (
    *sorted({*FRAMEWORKS.values()}),
    *("calendars", "dev", "django", "gcp", "mcp", "sandbox", "server", "sqlalchemy", "telemetry", "worker"),
)
INCLUDED = {"dev": ("asgi", "calendars", "gcp", "server", "worker"), "mcp": ("worker",), "server": ("worker",)}
"""The extras that others include."""
EXTRA_ADAPTERS = {
    **FRAMEWORKS,
    "scripts/quickjs/child": "sandbox",
    "adapters/opentelemetry": "telemetry",
    "outbox/sqlalchemy": "sqlalchemy",
}
GUARDED = {
    ("people/senders/apprise", "apprise"),
    ("features/calendars/sources", "holidays"),
    ("cli/log_output", "rich"),
    ("domain/recurrence/vtimezone", "icalendar"),
    ("local/embedded_app", "a2wsgi"),
    ("web/functions", "a2wsgi"),
    ("web/instance_end", "gunicorn"),
}
"""Imports that may fail, and then name the extra, or are not needed."""
IMPORTED_ELSEWHERE = {
    "cachecontrol": "firebase-admin, which does not declare it for certain",
    "functions-framework": "functions/main.py",
    "icalendar": "domain/recurrence/vtimezone, for the names that Windows has for zones",
    "google-cloud-firestore": "handlers that keep data of their own; tests compare our messages with it",
    "opentelemetry-exporter-gcp-monitoring": "the namespace package opentelemetry",
    "opentelemetry-exporter-gcp-trace": "the namespace package opentelemetry",
    "pyjwt[crypto]": "jwt",
    "tzdata": "zoneinfo",
}
"""Packages whose import is not found by their name, and where it is."""


def extra_of(module: str) -> str | None:
    if module.startswith(("local/django/", "outbox/django/")):
        return "django"
    if module in EXTRA_ADAPTERS:
        return EXTRA_ADAPTERS[module]
    if FOR_AGENTS.match(module):
        return "mcp"
    if FOR_WORKERS.match(module):
        return "worker"
    kinds = {"gcp": FOR_GOOGLE, "dev": FOR_DEVELOPMENT, "server": FOR_SERVERS}
    return next((extra for extra, modules in kinds.items() if modules.match(module)), None)


@cache
def imported_names(module: str) -> frozenset[str]:
    """Return the dotted names that a module imports from other packages."""
    found = set[str]()
    for node in ast.walk(ast.parse((SOURCE / f"{module}.py").read_text("utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name for name in names if name.partition(".")[0] not in {*sys.stdlib_module_names, "cloudsched"}}
    return frozenset(found)


@cache
def names_of(extra: str | None) -> set[str]:
    return {requirement.name for requirement in (declared(extra) if extra else declared())}


def test_a_module_imports_only_what_its_install_declares() -> None:
    """Also in functions and for types: nothing is imported only because another package happens to bring it."""
    undeclared = [
        f"{module} imports {name}"
        for module in MODULES
        if module not in PYTEST_PLUGINS
        for name in imported_names(module)
        if (module, name.partition(".")[0]) not in GUARDED and not name.startswith("pydantic_core")  # pydantic pins it
        if not providers(name) & names_of(extra_of(module))
    ]
    assert not undeclared


@pytest.mark.parametrize("extra", [None, *EXTRAS])
def test_what_is_declared_is_imported(extra: str | None) -> None:
    """No dependency is left over from code that is gone, or declared for the wrong install."""
    own = declared_alone(extra) if extra else declared()
    inherited = {str(each) for one in INCLUDED.get(extra or "", ()) for each in declared_alone(one)}
    modules = [module for module in MODULES if extra_of(module) == extra]
    used = {package for module in modules for name in imported_names(module) for package in providers(name)}
    for requirement in own:
        if str(requirement) not in inherited and str(requirement).partition(">")[0] not in IMPORTED_ELSEWHERE:
            assert requirement.name in used, f"nothing of {extra or 'the package'} imports {requirement.name}"


def run_with(kept: str, code: str) -> str:
    """Run code where only some packages are installed; `kept` is an expression. Return what it prints."""
    start = f"from tests.installs import *\nhide_all_but({kept})\n"
    warnings = ("-W", "error", "-W", "ignore:You are using a:FutureWarning")  # Google says so of a Python that ends
    command = [sys.executable, *warnings, "-c", start + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603 - our own code
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def import_all(modules: list[str]) -> str:
    names = ["cloudsched." + module.removesuffix("/__init__").replace("/", ".") for module in modules]
    return f"from importlib import import_module\nfor name in {names}:\n    import_module(name)\n"


NOT_IMPORTED = {"__init__", "__main__", "scripts/quickjs/child"} | PYTEST_PLUGINS
FUNCTIONS = """
sys.path.insert(0, "functions")
import main
from werkzeug.test import Client
import cloudsched
from cloudsched.config.access import Access
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role
key, kept = create_key("a", Role.ADMIN)
access = Access(api_keys=(str(kept),))
settings = cloudsched.Settings(store="sqlite", secret="x" * 32, executor_url="http://x", access=access)
with main.app.override(settings):
    client = Client(cloudsched.wsgi(main.app))
    assert client.get("/v1/tasks/x").status_code == 401
    assert client.get("/v1/inboxes/x/messages", headers={"X-Api-Key": key}).status_code == 200
    main.app.close()
cloudsched.asgi(main.app)
from cloudsched.adapters.google.id_tokens import decode_unverified
from cloudsched.errors import Unauthenticated
try:
    decode_unverified("no token")
except Unauthenticated:
    print("refused")
import cachecontrol
from firebase_admin import auth
from google.oauth2 import id_token
from cloudsched.testing import Simulation
with Simulation(main.app) as simulated:
    task = main.app.create(owner="ada", title="Tea", handler="remind", payload={"text": "Ready"})
    simulated.advance(__import__("datetime").timedelta(days=1))
    print(simulated.executions(task.id)[0].status)
"""
SIMULATION = """
from datetime import timedelta
from cloudsched import *
from cloudsched.testing import Simulation
app = App()
app.handler("greet")(lambda: "Hello")
with Simulation(app) as simulated:
    task = app.create(owner="ada", handler="greet")
    simulated.advance(timedelta(days=1))
    print(simulated.executions(task.id)[0].status)
"""


def test_a_deployment_runs_functions() -> None:
    """With ``[asgi,gcp]``: every module of the deployed path, the functions, and a simulation of them."""
    modules = [module for module in MODULES if extra_of(module) in {"gcp", None} and module not in NOT_IMPORTED]
    assert {"web/functions", "adapters/firestore/store"} <= {*modules}
    kept = "packages(declared('asgi', 'gcp'))"
    assert run_with(kept, import_all(modules) + FUNCTIONS).split() == ["refused", "SUCCEEDED"]


def test_a_plain_install_runs_simulations() -> None:
    """With nothing but cloudsched: the core, the client's models, and a simulation over SQLite."""
    modules = [module for module in MODULES if extra_of(module) is None and module not in NOT_IMPORTED]
    assert {"testing/simulation", "adapters/sqlite/store"} <= {*modules}
    assert run_with("packages(declared())", import_all([*modules, "client/views"]) + SIMULATION).split() == [
        "SUCCEEDED"
    ]


def test_the_extra_for_servers_is_enough_for_serve_and_the_page() -> None:
    """With ``[server]``, without Google's clients: ``serve``, an app that runs its own tasks, all that they import."""
    modules = [module for module in MODULES if extra_of(module) in {"server", None} and module not in NOT_IMPORTED]
    assert {"cli/serve", "dashboard/application", "local/embedded_app"} <= {*modules}
    modules = [module for module in modules if not module.startswith("local/django/")]
    run_with("packages(declared('server'))", import_all(modules))


def test_the_extra_for_workers_is_enough_for_workers_and_clients() -> None:
    """With ``[worker]``: the client, the worker and its command, over the API and over the store."""
    modules = [module for module in MODULES if extra_of(module) == "worker" and module not in NOT_IMPORTED]
    assert {"worker/api_source", "client/client", "worker/command"} <= {*modules}
    run_with("packages(declared('worker'))", import_all(modules))


def test_the_extra_for_development_is_enough_for_everything_local() -> None:
    """With ``[dev]``: the local stack, the emulator and all commands."""
    extras = {"dev", "gcp", "server", "worker", None}
    modules = [module for module in MODULES if extra_of(module) in extras and module not in NOT_IMPORTED]
    run_with("packages(declared('dev'))", import_all(modules))


def test_the_client_and_workers_through_the_api_need_no_google_package() -> None:
    """Where nothing of Google and no web server is installed, they are imported all the same."""
    neither = ["worker/store_source", "cli/apply", "cli/operators"]
    modules = [module for module in MODULES if extra_of(module) == "worker" and module not in {*NOT_IMPORTED, *neither}]
    kept = (
        "packages([each for each in declared('worker') if each.name in "
        "{'click', 'httpcore', 'httpx', 'pydantic', 'tenacity', 'typing-extensions', 'tzdata'}])"
    )
    run_with(kept, import_all([*modules, "app"]))


def test_a_plain_install_has_none_of_the_local_tools() -> None:
    """Neither declared nor brought along. Nor has it, or a server, any of Google's clients."""
    assert not (LOCAL_TOOLS | GOOGLE_CLIENTS) & packages(declared())
    assert not GOOGLE_CLIENTS & packages(declared("server"))
    assert not LOCAL_TOOLS & packages(declared("worker"))
    assert not {"quickjs-ng", "opentelemetry-sdk"} & packages(declared("dev"))


def test_emulator_sh_says_which_python_it_needs(tmp_path: Path) -> None:
    """Without a Python that is new enough it says so in a sentence, and changes nothing."""
    clone, tools = tmp_path / "clone", tmp_path / "bin"
    clone.mkdir()
    tools.mkdir()
    (clone / "requirements").mkdir()
    locks = [path.relative_to(ROOT).as_posix() for path in (ROOT / "requirements").iterdir()]
    for name in ("emulator.sh", "pyproject.toml", *locks):
        (clone / name).write_bytes((ROOT / name).read_bytes())
    for tool in ("bash", "dirname", "cksum", "cat"):
        (tools / tool).symlink_to(shutil.which(tool) or tool)
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    command, bash = (str(clone / "emulator.sh"), "demo"), str(tools / "bash")
    said = subprocess.run((bash, *command), capture_output=True, text=True, check=False, env={"PATH": str(tools)})  # noqa: S603 - ours
    assert said.returncode == 1
    assert "Python 3.11 or newer is needed" in said.stderr
    assert not (clone / ".venv").exists()


ASKS_FOR_EXTRAS = """
import cloudsched
from cloudsched import App
from cloudsched.errors import MissingExtra

def check(what, use):
    try:
        use()
    except MissingExtra as error:
        print(what, error.extra)
        assert "install" in str(error), error

for name in dir(cloudsched):
    check(name, lambda: getattr(cloudsched, name))
check("asgi()", lambda: cloudsched.asgi(App()))
check("wsgi()", lambda: cloudsched.wsgi(App()))
for name in ("client", "outbox.sqlalchemy", "outbox.django", "local.flask"):
    check(name, lambda: __import__(f"cloudsched.{name}", fromlist=["Client"]).Client)
"""


def test_a_name_that_needs_an_extra_says_which() -> None:
    """Every public name works in a plain installation, or raises our own error with the command to run."""
    printed = dict(line.split() for line in run_with("packages(declared())", ASKS_FOR_EXTRAS).splitlines())
    wanted = {"embedded": "server", "asgi()": "asgi", "client": "worker", "local.flask": "server"}
    assert wanted.items() <= printed.items()
    assert not {"App", "Schedule", "wsgi", "wsgi()"} & printed.keys()


def test_an_embedded_app_as_asgi_says_what_it_needs() -> None:
    """With the extra for the app itself, what an ASGI server needs is missing, and nothing else."""
    code = """
from cloudsched import App, embedded
from cloudsched.errors import MissingExtra
try:
    embedded(App(), "never used").asgi()
except MissingExtra as error:
    print(error.extra)
"""
    assert run_with("packages(declared('server'))", code) == "asgi\n"
