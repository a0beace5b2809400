#!/usr/bin/env python3
"""Build the source folder to deploy: your functions, plus cloudsched.

Usage: infra/build_source.py FUNCTIONS_DIR OUTPUT_DIR [PATTERN…]
       infra/build_source.py --digest FUNCTIONS_DIR [PATTERN…]    what is deployed, a line with a hash for each file
       infra/build_source.py --declares-schedules FUNCTIONS_DIR   exit with 0 if the code has an @app.scheduled
       infra/build_source.py --long-handlers FUNCTIONS_DIR SECONDS
                                   the handlers that say they take longer than a function may, one a line

Only Python files, requirements.txt and files that match a glob pattern (such as 'templates/*.html') are packed. Hidden
files, symbolic links, caches and virtual environments never are, so that no key in the folder ends up in the cloud.

A requirements.txt that pins a version (cloudsched==1.2.3) gets that one from the index; otherwise cloudsched is
packed as a wheel built from this checkout, so that you deploy exactly the code you tested. uv pins every
dependency, with the hashes of its files, for the Python of RUNTIME (python312) on Linux, whatever machine you build
on; sbom.cdx.json lists them. `.python-version` tells every builder that Python: one that takes the newest would not
get what was pinned.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[1]
PYTHON = os.environ.get("PYTHON", "python3")
PIP = (PYTHON, "-m", "pip", "--disable-pip-version-check")
PLATFORM = "x86_64-manylinux_2_35"
"""What the functions run on, as uv names it: Ubuntu 22.04 (cloud.google.com/run/docs/runtimes/python), glibc 2.35."""
OWN = re.compile(
    r"cloudsched *(\[[^]]*\])?(?![A-Za-z0-9._-]) *(?:== *([0-9][A-Za-z0-9.+!]*) *(?:#.*)?$)?", re.IGNORECASE
)
"""A line of requirements.txt that names cloudsched: its extras, and the version if it pins one."""
SCHEDULED = re.compile(r"@[A-Za-z_][A-Za-z0-9_.]*\.scheduled\(")


def walk(folder: Path) -> Iterator[Path]:
    """Yield the files and links in a folder, relative to it, without the folders that never hold source files."""
    for parent, folders, files in os.walk(folder):
        here = Path(parent)
        links = [each for each in folders if (here / each).is_symlink()]
        folders[:] = sorted(each for each in folders if is_source_folder(here / each))
        yield from ((here / each).relative_to(folder) for each in sorted([*files, *links]))


def is_source_folder(folder: Path) -> bool:
    """Whether source files may be in a folder: not in a hidden one, a cache, or a virtual environment."""
    is_other = folder.name.startswith(".") or folder.name in {"__pycache__", "node_modules", "site-packages"}
    return not (is_other or folder.is_symlink() or (folder / "pyvenv.cfg").exists())


def is_deployed(folder: Path, path: Path, patterns: Sequence[str]) -> bool:
    """Whether a file of the functions folder is packed."""
    if path.name.startswith(".") or (folder / path).is_symlink() or not (folder / path).is_file():
        return False
    known = path.suffix == ".py" or path == Path("requirements.txt")
    return known or any(fnmatchcase(str(path), each.removeprefix("./")) for each in patterns)


def list_deployed(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Return the files of the functions folder that are packed, relative to it."""
    return [each for each in walk(folder) if is_deployed(folder, each, patterns)]


def hash_file(file: Path) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def print_digest(functions: Path, patterns: Sequence[str]) -> None:
    """Print a line for each file that is deployed, cloudsched's own and the functions'."""
    own = [each for each in walk(ROOT / "src") if not (ROOT / "src" / each).is_symlink()]
    package = [Path("pyproject.toml"), *(Path("src") / each for each in own)]
    for folder, files in ((ROOT, sorted(package)), (functions, list_deployed(functions, patterns))):
        for each in files:
            print(f"{hash_file(folder / each)}  {each}")  # noqa: T201 - what the caller reads


def declares_schedules(functions: Path) -> bool:
    """Whether the functions' code has a handler with a schedule."""
    files = (functions / each for each in list_deployed(functions, ()) if each.suffix == ".py")
    return any(SCHEDULED.search(each.read_text(encoding="utf-8", errors="replace")) for each in files)


def find_long_handlers(functions: Path, seconds: float) -> Iterator[str]:
    """Yield the handlers whose expected_duration is longer than their function may take, and that no worker runs."""
    for path in list_deployed(functions, ()):
        if path.suffix != ".py":
            continue
        try:
            tree = ast.parse((functions / path).read_text(encoding="utf-8", errors="replace"))
        except SyntaxError:  # which the deployment itself will report
            continue
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") != "handler" or not call.args:
                continue
            options = {each.arg: each.value for each in call.keywords}
            length = read_duration(options.get("expected_duration"))
            if length is not None and length > seconds and "pull" not in options:
                yield f"{ast.unparse(call.args[0])} in {path}:{call.lineno} expects {length:.0f} s"


def read_duration(value: ast.expr | None) -> float | None:
    """Return the seconds of a timedelta(…) of plain numbers, None for anything else."""
    if not isinstance(value, ast.Call) or not ast.unparse(value.func).endswith("timedelta"):
        return None
    try:
        named = {str(each.arg): ast.literal_eval(each.value) for each in value.keywords}
        return timedelta(*map(ast.literal_eval, value.args), **named).total_seconds()
    except (ValueError, TypeError):
        return None


def pack(functions: Path, output: Path, patterns: Sequence[str]) -> None:
    """Copy what is deployed into a new folder, and name what is not."""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    for path in walk(functions):
        if not is_deployed(functions, path, patterns):
            print(f"not packed: {path}", file=sys.stderr)  # noqa: T201 - for whoever runs it
            continue
        target = output / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(functions / path, target)
    if not (output / "main.py").is_file() or not (output / "requirements.txt").is_file():
        sys.exit(f"error: {functions} must contain main.py and requirements.txt")


def add_own(output: Path) -> str:
    """Let requirements.txt name a wheel of this checkout, unless it pins a version; return what it names."""
    file = output / "requirements.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    found = [match for each in lines if (match := OWN.match(each))]
    pinned = next((match[2] for match in found if match[2]), None)
    if pinned:
        return f"cloudsched {pinned} of the index"
    run([*PIP, "wheel", str(ROOT), "--quiet", "--no-deps", "--wheel-dir", str(output)])
    (wheel,) = (each.name for each in output.glob("cloudsched-*.whl"))
    own = [f"./{wheel}{match[1] or ''}" for match in found] or [f"./{wheel}"]
    file.write_text("\n".join([*(each for each in lines if not OWN.match(each)), *own, ""]), encoding="utf-8")
    return wheel


def pin(output: Path, version: str) -> None:
    """Replace requirements.txt with the pins of all that it needs, and list them in a bill of materials."""
    command = [find_uv(), "pip", "compile", "requirements.txt", "--quiet", *find_index_options()]
    command += ["--python-version", version, "--python-platform", PLATFORM]
    command += ["--generate-hashes", "--no-header", "--no-annotate"]
    found = run(command, folder=output)
    pins = [to_relative(each, output) for each in found.replace("\\\n", " ").splitlines() if each.strip()]
    if not all("--hash=" in each for each in pins):
        print("requirements.txt has no hashes: not every package has a file that has one", file=sys.stderr)  # noqa: T201
        pins = [each.partition(" --hash=")[0] for each in pins]
    (output / "requirements.txt").write_text("\n".join([*sorted(pins), ""]), encoding="utf-8")
    components = [to_component(each.partition(" --hash=")[0]) for each in sorted(pins)]
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": components}
    (output / "sbom.cdx.json").write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")


def to_relative(pin: str, output: Path) -> str:
    """Return a pin in one line; a file of the folder by its path in it, for the cloud has the folder elsewhere."""
    words = " ".join(pin.split())
    named = re.match(rf"(?:[^ ]+ @ )?(?:{re.escape(output.resolve().as_uri())}|\.)/(?P<name>[^ ]+\.whl)", words)
    return f"./{named['name']} --hash=sha256:{hash_file(output / named['name'])}" if named else words


def to_component(pin: str) -> dict[str, Any]:
    """Return a pin as a component of the bill of materials."""
    if pin.startswith("./"):
        name, version = Path(pin).name.split("-")[:2]
    else:
        name, _, version = pin.partition(" ")[0].partition("==")
    name = re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()
    return {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}


def find_uv() -> str:
    """Return the path of uv, which is installed beside the source if the machine has none."""
    folder = ROOT / "build" / "uv"
    found = shutil.which("uv") or shutil.which("uv", path=folder / "bin")
    if found is None:
        run([*PIP, "install", "--quiet", "--target", str(folder), "uv"])
    return found or str(folder / "bin" / "uv")


def find_index_options() -> list[str]:
    """Return pip's own settings of where packages are as options of uv, which does not read them."""
    options = []
    for line in run([*PIP, "config", "list"]).splitlines():
        name, _, value = line.partition("=")
        option = name.rpartition(".")[2]
        if option in {"index-url", "extra-index-url", "find-links"}:
            options += [word for each in value.strip("'\"").split() for word in (f"--{option}", each)]
    # pip takes the newest version of all indexes, uv all versions from the first index that has one.
    return [*options, "--index-strategy", "unsafe-best-match"] if "--extra-index-url" in options else options


def run(command: list[str], folder: Path | None = None) -> str:
    """Run a program and return what it prints; end with its error if it fails."""
    environment = dict(os.environ)
    if "PIP_CERT" in environment:
        environment.setdefault("SSL_CERT_FILE", environment["PIP_CERT"])  # uv trusts what pip is told to trust
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(f"{done.stderr}error: {' '.join(command[:4])} failed")
    return done.stdout


def main(arguments: Sequence[str]) -> None:
    """Do what the arguments say."""
    match arguments:
        case ["--digest", functions, *patterns]:
            print_digest(Path(functions), patterns)
        case ["--declares-schedules", functions]:
            sys.exit(not declares_schedules(Path(functions)))
        case ["--long-handlers", functions, seconds]:
            for each in find_long_handlers(Path(functions), float(seconds)):
                print(each)  # noqa: T201 - what the caller reads
        case [functions, output, *patterns] if not functions.startswith("-"):
            version = "3." + os.environ.get("RUNTIME", "python312").removeprefix("python3")
            target = Path(output)
            pack(Path(functions), target, patterns)
            own = add_own(target)
            (target / ".python-version").write_text(f"{version}\n", encoding="utf-8")
            pin(target, version)
            print(f"Built {output} with {own}")  # noqa: T201 - for whoever runs it
        case ["--help" | "-h"]:
            print(__doc__)  # noqa: T201
        case _:
            sys.exit(str(__doc__))


if __name__ == "__main__":
    main(sys.argv[1:])
