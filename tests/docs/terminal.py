"""A terminal in which the commands of the pages are typed: a real bash, where what needs a cloud is only written down.

`cloudsched` runs in this process, so a command takes milliseconds and sees the clock that the test has set. Commands
that keep running (`cloudsched dev`) are parsed and not run: tests/stories start each of them as a process. `gcloud`,
the scripts in infra and package managers are stand-ins that write down how they were called.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click
from click.testing import CliRunner
from tests.harness import ROOT, run_to_end
from werkzeug.wrappers import Request, Response

from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.cli.main import cloudsched
from cloudsched.local.data_folder import STORE_FILE_NAME
from cloudsched.local.wsgi_server import WebServer

KEEP_RUNNING = {"dev", "serve", "worker", "emulator", "mcp", "dashboard", "demo"}
"""Commands that are parsed here; ``test_long_commands.py`` names the tests that start them."""
ELSEWHERE = {"--project", "--config", "--follow"}
"""Options with which a command asks Google Cloud, or prints until it is stopped."""
RECORDED = ("gcloud", "pip", "npm", "python", "python3", "crontab", "./emulator.sh", "git", "gh", "editor")
"""Programs that are not started; what they are given is written down."""

_CLOUDSCHED = """#!/bin/bash
# Hand the arguments, the folder, the environment and the input to the test's process, and print what it answers.
out=$(mktemp)
words=$(printf '%s\\0' "$@" | base64 -w0)
variables=$(env -0 | base64 -w0)
[ -t 0 ] && input=/dev/null || input=-
curl -sS --noproxy '*' -X POST --data-binary @"$input" -H "X-Words: $words" -H "X-Folder: $PWD" \\
    -H "X-Out: $out" -H "X-Variables: $variables" "$TERMINAL_URL" || exit 70
cat "$out.err" >&2
cat "$out.out"
exit "$(cat "$out.code")"
"""
_CURL = """#!/bin/bash
# An answer that is an error fails, and a server that has just been started is waited for: 7 is a refused connection.
for _ in {{1..1200}}; do
    code=0
    {curl} --fail-with-body --noproxy '*' "$@" || code=$?
    [ "$code" = 7 ] || exit "$code"
    sleep 0.05
done
exit 7
"""
_RECORDED = """#!/bin/bash
# What reads its input reads all of it: whoever writes that would be killed by a closed pipe.
case " $* " in *[=" "]-" "*) cat >/dev/null ;; esac
{ printf '%s\\0' "${0#"$TERMINAL_TOOLS/"}" "$@"; printf '\\036'; } >>"$TERMINAL_RECORD"
name=$(basename "$0")
[ ! -f "$TERMINAL_TOOLS/$name.answer" ] || cat "$TERMINAL_TOOLS/$name.answer"
"""


@dataclass
class Terminal:
    """A folder, the programs in it, and what has been typed."""

    folder: Path
    variables: Mapping[str, str]
    """Environment variables of what is typed."""
    url: str = ""
    parsed: list[str] = field(default_factory=list)
    """The commands that keep running, which were only parsed."""

    @property
    def tools(self) -> Path:
        return self.folder / ".tools"

    def read_calls(self) -> list[list[str]]:
        """Return how the stand-ins were called."""
        record = self.folder / ".record"
        text = record.read_text("utf-8") if record.exists() else ""
        return [call.split("\0")[:-1] for call in text.split("\x1e")[:-1]]

    def type(self, text: str) -> subprocess.CompletedProcess[str]:
        """Run a block, each command of which has to succeed; return what it printed."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CLOUDSCHED_")}
        environment |= {
            "PATH": f"{self.tools}{os.pathsep}{os.environ['PATH']}",
            "TERMINAL_URL": self.url,
            "TERMINAL_TOOLS": str(self.tools),
            "TERMINAL_RECORD": str(self.folder / ".record"),
            "TMPDIR": str(self.tools),
            "EDITOR": "editor",
            "NO_COLOR": "1",
            **self.variables,
        }
        return run_to_end(
            ["/bin/bash", "-e", "-o", "pipefail", "-c", f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{text}"],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
        )

    def answer(self, request: Request) -> Response:
        """Run one `cloudsched` command."""
        words = base64.b64decode(request.headers["X-Words"]).decode().split("\0")[:-1]
        variables = dict(
            line.partition("=")[::2] for line in base64.b64decode(request.headers["X-Variables"]).decode().split("\0")
        )
        out = Path(request.headers["X-Out"])
        folder = Path(request.headers["X-Folder"])
        code, printed, complained = self._run(words, variables, folder, request.get_data(as_text=True))
        out.with_name(out.name + ".out").write_text(printed, "utf-8")
        out.with_name(out.name + ".err").write_text(complained, "utf-8")
        out.with_name(out.name + ".code").write_text(str(code), "utf-8")
        return Response()

    def _run(self, words: list[str], variables: dict[str, str], folder: Path, given: str) -> tuple[int, str, str]:
        if words == ["dev", "--print-env"]:
            return 0, "".join(f"export {name}={shlex.quote(value)}\n" for name, value in self.variables.items()), ""
        if (words[:1] and words[0] in KEEP_RUNNING) or ELSEWHERE & set(words):
            self.parsed.append(shlex.join(words))
            if words[0] == "serve":  # it leaves this behind
                data = folder / words[words.index("--data") + 1]
                data.mkdir(exist_ok=True)
                SqliteStore(data / STORE_FILE_NAME).close()
            return (0, "", "") if (fault := find_fault(words)) is None else (2, "", fault)
        kept = ("CLOUDSCHED_", *self.variables)
        own = {name: value for name, value in variables.items() if name.startswith(kept)}
        gone = dict.fromkeys(name for name in os.environ if name.startswith("CLOUDSCHED_") and name not in own)
        with _LOCK, contextlib.chdir(folder):
            done = CliRunner().invoke(
                cloudsched, words, input=given or "y\n" * 9, env={**gone, **own, "COLUMNS": "120"}
            )
        complained = done.stderr + (f"{done.exception!r}\n" if done.exception and done.exit_code == 1 else "")
        return done.exit_code, done.stdout, complained


_LOCK = threading.Lock()
"""One command at a time: click's runner takes over this process's output and environment."""


def find_fault(words: list[str]) -> str | None:
    """Have click parse a command without running it; return its complaint."""
    context = click.Context(cloudsched, info_name="cloudsched")
    command: click.Command = cloudsched
    words = list(words)
    try:
        while isinstance(command, click.Group):
            name = words.pop(0)
            found = command.get_command(context, name)
            if found is None:
                return f"there is no command {name}"
            command = found
            context = click.Context(command, parent=context, info_name=name)
        with contextlib.redirect_stdout(None):
            command.make_context(command.name, words, parent=context.parent)
    except (click.ClickException, IndexError) as error:
        return f"{type(error).__name__}: {error}"
    except click.exceptions.Exit:
        return None
    return None


@contextlib.contextmanager
def open_terminal(folder: Path, variables: Mapping[str, str], answers: Mapping[str, str]) -> Iterator[Terminal]:
    """Prepare the folder and its programs; `answers` is what stand-ins print."""
    terminal = Terminal(folder, variables)
    scripts = [
        path.relative_to(ROOT).as_posix() for path in (ROOT / "infra").iterdir() if path.suffix in {".sh", ".py"}
    ]
    terminal.tools.mkdir()
    _write(terminal.tools / "cloudsched", _CLOUDSCHED)
    _write(terminal.tools / "curl", _CURL.format(curl=shutil.which("curl")))
    _write(terminal.tools / "uvicorn", f'#!/bin/bash\nexec {sys.executable} -m uvicorn "$@"\n')
    for name in RECORDED:
        if not name.startswith("./"):
            _write(terminal.tools / name, _RECORDED)
    for script in [*scripts, "emulator.sh"]:
        _write(folder / script, _RECORDED)
    for name, text in answers.items():
        (terminal.tools / f"{name}.answer").write_text(text, "utf-8")
    with WebServer(Request.application(terminal.answer)) as server:
        server.serve()
        terminal.url = f"http://{server.address}"
        yield terminal
        server.stop()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)
