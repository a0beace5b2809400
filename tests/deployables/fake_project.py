"""Shared by the tests of ``infra/``: a fake project, and a way to run the scripts against it."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.deployables import fake_resources
from tests.deployables.fake_gcloud import FakeCloud
from tests.deployables.fake_resources import NUMBER, State
from tests.deployables.python_server import CLIENT as PYTHON3
from tests.harness import run_to_end

ROOT = Path(__file__).parents[2]
AT_END = ExitStack()
"""What ends with the session, or at the latest with this process."""
atexit.register(AT_END.close)
PROJECT = fake_resources.PROJECT
EMPTY: State = {
    f"project/{PROJECT}": {"projectNumber": NUMBER},
    "sink/_Default": {"name": "_Default", "exclusions": []},
}
"""A new project: Google gives each a log sink."""
TABLE: State = json.loads((ROOT / "infra/resources.json").read_text("utf-8"))
IN_USE: State = {**EMPTY, "services": TABLE["services"]}
"""A project in which all APIs have been used for long."""

_COMMANDS = """ask() {{
  local LC_ALL=C extra="" status size output word name="$1"
  shift
  for word in "$@"; do
    [[ "$word" != --data-file=- ]] || extra="$(cat)"
    [[ "$word" != /dev/fd/* && "$word" != /proc/*/fd/* ]] || extra="$(<"$word")"
  done
  exec 9<>/dev/tcp/127.0.0.1/{port} || return 99
  printf '%s\\0' "$(($# + 2))" "$name" "$extra" "$@" >&9
  IFS=' ' read -r -u 9 status size || return 98
  case "$status" in
    137) kill -KILL 0 ;;
    130) (kill -INT 0) ;;
    143) (kill -TERM 0) ;;
  esac
  output=""
  IFS= read -r -d '' -n "$size" -u 9 output || :
  exec 9>&-
  if ((status)); then printf '%s' "$output" >&2; else printf '%s' "$output"; fi
  return "$status"
}}
gcloud() {{ ask gcloud "$@"; }}
curl() {{ ask curl "$@"; }}
sleep() {{ ask sleep "$1"; }}
date() {{
  local now
  now="$(ask clock)"
  if ((BASH_VERSINFO[0] < 4)); then
    command date -r "$now" "$@" # as on a Mac, which has that bash
    return
  fi
  case "$*" in
    +*) printf "%(${{1#+}})T\\n" "$now" ;;
    '-u +'*) TZ=UTC printf "%(${{2#+}})T\\n" "$now" ;;
    *) return 97 ;;
  esac
}}
"""
"""What the scripts call as gcloud and curl, with which each asks the fake project; and as sleep and date, which let its
time pass and tell it.

They are functions, since a script calls them up to three hundred times: a process of its own for each call, even of a
shell, would cost more than all else that the script does. Programs of the same names are on the PATH for those who look
there. Whatever shell options and traps the script has hold in the functions, too.
"""
FUNCTIONS = ("execute", "sweep", "api")
_PACKER = """#!/usr/bin/env python3
import os, runpy, sys
from pathlib import Path
if sys.argv[1].startswith("--"):
    runpy.run_path(str(Path(sys.argv[0]).with_name("packer.py")), run_name="__main__")
else:
    output = Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    (output / "main.py").touch()
    (output / ".python-version").write_text("3." + os.environ["RUNTIME"].removeprefix("python3"), "utf-8")
"""
"""What stands for build_source.py, which packs nothing."""
_PYTHON = """#!/bin/sh
# Replaces pip when the scripts build the wheel; test_infra_source.py builds it for real.
if [ "$2" = pip ] && [ "$4" = wheel ]; then touch "$9/cloudsched-0-py3-none-any.whl"; exit; fi
if [ "$2" = pip ]; then exit; fi
# The API of the fake project has no tasks, and no address of the network's.
if [ "$2 $3" = "cloudsched check" ]; then
  printf '%s' "$CLOUDSCHED_TOKEN" > "${{0%/*}}/token"
  shift
  echo "$@" > "${{0%/*}}/checked"
  cat "${{0%/*}}/answer" 2>/dev/null
  exit "$(cat "${{0%/*}}/code" 2>/dev/null || echo 0)"
fi
case "$1" in *.py) exec "${{0%/*}}/python3" "$@" ;; esac
exec {python} "$@"
"""


@dataclass(frozen=True)
class Result:
    """A script's exit code and output."""

    code: int
    out: str
    err: str


class Cloud:
    """A fake project and a copy of the scripts that runs against it.

    The functions' source has main.py alone, unless `pack_source` is called: nothing reads more, and packing costs a
    fifth of an upgrade.
    """

    def __init__(self, folder: Path, state: State | None = None, **config: str) -> None:
        self.folder = folder
        self.checkout = folder / "checkout"
        shutil.copytree(_snapshot(), self.checkout)
        packer = self.checkout / "infra/build_source.py"
        packer.rename(packer.with_name("packer.py"))
        packer.write_text(_PACKER, "utf-8")
        packer.chmod(0o755)
        self.config = folder / "config.sh"
        self.configure(**config)
        self.fake = FakeCloud(deepcopy(EMPTY if state is None else state))
        (folder / "bin").mkdir()
        commands = _COMMANDS.format(port=self.fake.server_address[1])
        self._command("commands.bash", commands)
        for name in ("gcloud", "curl"):
            self._command(name, f'#!/bin/bash -p\n{commands}{name} "$@"\n')
        self._command("uv", "#!/bin/sh\ncp requirements.txt ../requested.txt\ncat ../resolved.txt 2>/dev/null || :\n")
        self._command("python", _PYTHON.format(python=sys.executable))
        self.use_python(is_copied=Path("/proc/self/fd").exists())

    def configure(self, **config: str) -> None:
        """Rewrite the configuration; the values are bash. Monitoring, half of a run's work, is off otherwise."""
        settings = {"PROJECT": PROJECT, "MONITORING": "off"} | config
        self.config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), "utf-8")

    def configure_again(self, config: dict[str, str]) -> None:
        """Rewrite the configuration if there is another one."""
        if config:
            self.configure(**config)

    def pack_source(self) -> None:
        """Let the scripts pack the functions' source, as they really do."""
        shutil.copy2(_snapshot() / "infra/build_source.py", self.checkout / "infra/build_source.py")

    def use_python(self, *, is_copied: bool) -> None:
        """Let the scripts have a new interpreter each time, or a copy of one that waits."""
        # On many machines python3 is a script of a version manager, which costs more than all that it starts.
        python = Path(sys.executable).resolve()
        new = f'#!/bin/sh\nexec {python} -S "$@"\n'
        self._command("python3", PYTHON3.format(python=python, port=serve_python(python)) if is_copied else new)

    @property
    def now(self) -> int:
        """The time that `date` tells the scripts. It goes on while they sleep, however slow the machine is."""
        return int(self.fake.delays.time)

    @property
    def state(self) -> State:
        return self.fake.state

    @property
    def calls(self) -> list[list[str]]:
        """Every call of gcloud and curl during the last run."""
        return self.fake.calls

    @property
    def changes(self) -> int:
        """How many calls of the last run changed something."""
        return self.fake.changes

    @property
    def ledger(self) -> dict[str, str]:
        """The annotations of the dispatch secret."""
        annotations: dict[str, str] = self.state["secret/cloudsched-dispatch"]["annotations"]
        return annotations

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which a script finds the fake project."""
        return {
            "BASH_ENV": str(self.folder / "bin" / "commands.bash"),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "PYTHON": str(self.folder / "bin" / "python"),
        }

    def run(
        self, script: str, *arguments: str, die_at: int = 0, deny: str = "", seconds: int = 200, **config: str
    ) -> Result:
        """Run a script of ``infra/``, with another configuration if one is given, until it exits or is killed."""
        self.configure_again(config)
        self.fake.forget()
        shutil.rmtree(self.checkout / "build", ignore_errors=True)  # as in a new clone, so nothing old is deployed
        self.fake.die_at, self.fake.deny = die_at, deny
        done = run_to_end(
            [str(self.checkout / "infra" / script), f"--config={self.config}", *arguments],
            env=self.environment,
            timeout=seconds,
            start_new_session=True,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def ok(self, script: str, *arguments: str, seconds: int = 200, **config: str) -> Result:
        """Run a script and require it to succeed within so many seconds."""
        self.configure_again(config)
        result = self.run(script, *arguments, seconds=seconds)
        assert result.code == 0, result.err + result.out
        return result

    def fails(self, script: str, *arguments: str, deny: str = "", **config: str) -> Result:
        """Run a script and require it to end with an error; a check that cannot be made ends with 2."""
        self.configure_again(config)
        result = self.run(script, *arguments, deny=deny)
        assert result.code in {1, 2}, result.err + result.out
        return result

    def check(self) -> None:
        """Require that nothing differs from the configuration."""
        assert self.ok("deploy.sh", "--check").out == ""

    def bindings(self) -> set[tuple[str, str, str, str]]:
        found = ((key, rows) for key, rows in self.state.items() if key.startswith("iam/"))
        return {(key.removeprefix("iam/"), *row) for key, rows in found for row in rows}

    def revision(self, function: str) -> State:
        status = self.state[f"service/cloudsched-{function}"]["status"]
        found: State = status["revisions"][status["latestReadyRevisionName"]]
        return found

    def serving(self, function: str) -> dict[str, int]:
        """Return the percentage of requests that each revision of a function gets."""
        parts = self.state[f"service/cloudsched-{function}"]["status"]["traffic"]
        return {part["revisionName"]: part["percent"] for part in parts}

    def _command(self, name: str, content: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(content, "utf-8")
        file.chmod(0o755)


@cache
def serve_python(python: Path, *modules: str, path: str = "") -> int:
    """Start an interpreter that waits and has these modules, once; return its port. It ends when this process does."""
    command = [str(python), "-S", str(Path(__file__).with_name("python_server.py")), *modules]
    server = subprocess.Popen(  # noqa: S603 - our own interpreter, or gcloud's
        command,
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert server.stdout
    AT_END.enter_context(server)  # closes its input, and waits for its end
    return int(server.stdout.readline())


@cache
def _snapshot() -> Path:
    """Copy the files that the scripts read, once, so that edits during a test run make no difference."""
    snapshot = Path(tempfile.mkdtemp(prefix="cloudsched-infra-"))
    AT_END.callback(shutil.rmtree, snapshot, ignore_errors=True)
    for part in ("infra", "functions", "pyproject.toml", "src/cloudsched/domain/documents/document.py"):
        source, target = ROOT / part, snapshot / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("config.sh", "__pycache__"))
        else:
            shutil.copy2(source, target)
    return snapshot
