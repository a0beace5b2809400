"""build_source.py packs a whitelist of files, whatever else lies in the functions folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.deployables.fake_project import Cloud
from tests.harness import run_to_end

PACKED = {
    "main.py",
    "handlers.py",
    "requirements.txt",
    "sbom.cdx.json",
    ".python-version",
    "reports/__init__.py",
    "reports/monthly.py",
}
CLUTTER = (
    ".venv/lib/python3.12/site-packages/secret.py",
    ".venv/pyvenv.cfg",
    "environment/lib/module.py",
    "environment/pyvenv.cfg",
    "lib/site-packages/module.py",
    "node_modules/tool/setup.py",
    "__pycache__/main.cpython-312.pyc",
    "__pycache__/main.py",
    "reports/__pycache__/monthly.cpython-312.pyc",
    ".git/hooks/hook.py",
    ".env",
    ".hidden.py",
    "key.json",
    "id_rsa",
    "server.pem",
    "handlers.py.orig",
    "tasks.db",
    "reports/requirements.txt",
    "reports/template.html",
    "reports/.template.html",
)
WHEEL = "cloudsched-0-py3-none-any.whl"


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name, "utf-8")


def build(cloud: Cloud, functions: Path, *patterns: str, **variables: str) -> tuple[set[str], str]:
    """Build a source folder, with pip replaced; return the packed files and the messages."""
    cloud.pack_source()
    output = cloud.folder / "source"
    done = run_to_end(
        [str(cloud.checkout / "infra/build_source.py"), str(functions), str(output), *patterns],
        env=os.environ | cloud.environment | variables,
    )
    assert done.returncode == 0, done.stderr
    packed = (file for file in output.rglob("*") if not file.is_dir())
    return {str(file.relative_to(output)) for file in packed} - {WHEEL}, done.stderr


def test_only_source_files_are_packed(tmp_path: Path) -> None:
    """Python files and requirements.txt are packed; environments, keys, caches, hidden files and symlinks are not."""
    cloud = Cloud(tmp_path)
    functions = tmp_path / "functions"
    outside = tmp_path / "outside"
    write(functions, *PACKED, *CLUTTER)
    write(outside, "stolen.py")
    (functions / "linked.py").symlink_to(outside / "stolen.py")
    (functions / "linked").symlink_to(outside)
    packed, messages = build(cloud, functions)
    assert packed == PACKED
    for name in ("key.json", "linked.py", "reports/template.html"):
        assert f"not packed: {name}\n" in messages, messages
    assert ".venv/lib" not in messages


@pytest.mark.parametrize(("variables", "version"), [({}, "3.12"), ({"RUNTIME": "python313"}, "3.13")])
def test_every_builder_is_told_the_python_of_the_pins(tmp_path: Path, variables: dict[str, str], version: str) -> None:
    """The source names the Python for which its files are pinned, whatever a user's own file says.

    Google's builders take the newest one otherwise (cloud.google.com/docs/buildpacks/python), for which the hashes of
    cffi and others are different.
    """
    cloud = Cloud(tmp_path)
    functions = tmp_path / "functions"
    write(functions, *PACKED)
    build(cloud, functions, **variables)
    assert (cloud.folder / "source/.python-version").read_text("utf-8") == f"{version}\n"


@pytest.mark.parametrize(
    ("line", "extras"),
    [
        ("cloudsched", ""),
        ("cloudsched[sandbox]", "[sandbox]"),
        ("cloudsched==1.*", ""),
        ("Cloudsched [sandbox,telemetry] >= 0.1 # both", "[sandbox,telemetry]"),
        ("requests", ""),
    ],
)
def test_extras_are_installed_too(tmp_path: Path, line: str, extras: str) -> None:
    """The packages of the extras that requirements.txt names are pinned; other packages keep their lines."""
    cloud = Cloud(tmp_path)
    functions = tmp_path / "functions"
    write(functions, *PACKED)
    (functions / "requirements.txt").write_text(f"cloudsched-of-mine==1\n{line}\n", "utf-8")
    build(cloud, functions)
    requested = (cloud.folder / "requested.txt").read_text("utf-8").splitlines()
    own = [each for each in requested if each.startswith("./")]
    assert own == [f"./{WHEEL}{extras}"]
    assert set(requested) - {*own} == {"cloudsched-of-mine==1", *({line} if line == "requests" else ())}


@pytest.mark.parametrize("line", ["cloudsched==1.2.3", "Cloudsched [sandbox,telemetry] == 1.2.3rc1 # tried in staging"])
def test_a_pinned_version_comes_from_the_index(tmp_path: Path, line: str) -> None:
    """Where requirements.txt names one version, that is what is resolved, and no wheel of the checkout is packed."""
    cloud = Cloud(tmp_path)
    functions = tmp_path / "functions"
    write(functions, *PACKED)
    (functions / "requirements.txt").write_text(f"{line}\nrequests\n", "utf-8")
    build(cloud, functions)
    assert (cloud.folder / "requested.txt").read_text("utf-8").splitlines() == [line, "requests"]
    assert list((cloud.folder / "source").glob("*.whl")) == []


def test_further_files_are_packed_by_name(tmp_path: Path) -> None:
    """FUNCTIONS_FILES adds files by glob pattern, but never hidden files, environments or symlinks."""
    cloud = Cloud(tmp_path)
    functions = tmp_path / "functions"
    write(functions, *PACKED, *CLUTTER)
    (functions / "reports/linked.html").symlink_to(functions / "key.json")
    packed, _ = build(cloud, functions, "reports/*.html")
    assert packed == PACKED | {"reports/template.html"}


def test_a_deployment_packs_the_configured_files_and_its_digest_covers_them(tmp_path: Path) -> None:
    """deploy.sh passes FUNCTIONS_FILES on to the build. Clutter makes no function differ; such a file does."""
    functions = tmp_path / "functions"
    write(functions, *PACKED, "reports/first.html", "key.json")
    cloud = Cloud(tmp_path / "cloud", None, FUNCTIONS_DIR=str(functions), FUNCTIONS_FILES="('reports/*.html')")
    cloud.pack_source()
    cloud.ok("deploy.sh")
    source = cloud.checkout / "build/functions-source"
    assert (source / "reports/first.html").is_file()
    assert not (source / "key.json").exists()
    write(functions, *(name for name in CLUTTER if name != "reports/template.html"))
    cloud.check()
    write(functions, "reports/template.html")
    assert "function cloudsched-api" in cloud.run("deploy.sh", "--check").out


LONG_HANDLERS = """
from datetime import timedelta
import datetime as dt
from cloudsched import App

app = App()

@app.handler("long", expected_duration=timedelta(minutes=45))
def long() -> None: ...

@app.handler("longer", expected_duration=dt.timedelta(0, 3000))
def longer() -> None: ...

@app.handler("of a worker", expected_duration=timedelta(hours=1), pull="gpu")
def work() -> None: ...

@app.handler("just right", expected_duration=timedelta(seconds=1800))
def fit() -> None: ...

@app.handler("unknown", expected_duration=LIMIT)
def unknown() -> None: ...
"""


def test_a_handler_that_the_platform_would_stop_is_named(tmp_path: Path) -> None:
    """In a dry run and a deployment, with the limit; what a worker runs has no limit there."""
    functions = tmp_path / "functions"
    write(functions, *PACKED)
    (functions / "handlers.py").write_text(LONG_HANDLERS, "utf-8")
    (functions / "broken.py").write_text("def (", encoding="utf-8")
    cloud = Cloud(tmp_path / "cloud", None, FUNCTIONS_DIR=str(functions), EXECUTE_TIMEOUT="1800")
    cloud.pack_source()
    for options in (("--dry-run",), ()):
        said = cloud.ok("deploy.sh", *options)
        warned = [line for line in f"{said.out}\n{said.err}".splitlines() if line.startswith("Warning: the handler")]
        assert [line.split("'")[1] for line in warned] == ["long", "longer"]
        assert all("EXECUTE_TIMEOUT is 1800" in line for line in warned)
