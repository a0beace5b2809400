"""The process that a script runs in: what it is given, how it dies, and that nothing that it says is believed."""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from tests.harness import run_to_end
from tests.scripts.script_cases import GENEROUS_SECONDS, NOW, OUTPUT, Json, limited_interpreter, script_input

from cloudsched.engine.ports.interpreter import ScriptResponse
from cloudsched.errors import InterpreterUnavailable, LimitExceeded, Misconfigured, ScriptFailed
from cloudsched.scripts.quickjs.interpreter import QuickJs
from cloudsched.scripts.quickjs.process import ScriptProcess


def _children() -> set[int]:
    """Return the processes that this thread has started and that live: other threads come and go meanwhile."""
    return {int(each) for each in Path("/proc/thread-self/children").read_text().split()}


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@linux
def test_the_script_process_inherits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable, no descriptor but its pipes (and libffi), no way to files, sockets and processes; and it ends."""
    monkeypatch.setenv("CLOUDSCHED_SECRET", "do-not-tell-anybody")
    before = _children()
    with (
        Path(__file__).open() as file,
        limited_interpreter(GENEROUS_SECONDS).run(script_input("await sleep(1)")) as script,
    ):
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003 - even so
        script.resume((), NOW)
        (child,) = _children() - before
        home = Path(f"/proc/{child}")
        assert (home / "environ").read_bytes() == b""
        assert {each.name for each in (home / "fd").iterdir() if "/libffi.so" not in str(each.readlink())} <= {*"012"}
        limits = {line[:26].strip(): line[26:].split()[:2] for line in (home / "limits").read_text().splitlines()}
        assert limits["Max cpu time"] == ["62", "63"]  # SIGXCPU, which says why it ended, comes before SIGKILL
        assert limits["Max open files"] == ["0", "0"]
        assert limits["Max file size"] == limits["Max processes"] == limits["Max core file size"] == ["0", "0"]
        status = dict(line.split(":\t", 1) for line in (home / "status").read_text().splitlines())
        assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")
    assert child not in _children()


@linux
def test_a_process_that_dies_is_reported_as_unavailable() -> None:
    """The machine may be the cause, so another attempt may succeed."""
    before = _children()
    with limited_interpreter(GENEROUS_SECONDS).run(script_input("await sleep(1)")) as script:
        script.resume((), NOW)
        (child,) = _children() - before
        os.kill(child, signal.SIGKILL)
        with pytest.raises(InterpreterUnavailable, match="died"):
            script.resume([ScriptResponse(1)], NOW)


SANDBOXED = """
import sys
sys.path[:0] = sys.argv[1:]
from cloudsched.scripts.quickjs.child import enter_sandbox
import _socket, ctypes, posix
open_ = open
assert enter_sandbox(2**28, 9)
def refused(what):
    try:
        what()
    except (OSError, MemoryError) as error:
        return
    posix.write(1, b"not refused")
posix.write(1, b"begun ")
libc = ctypes.CDLL(None)
for what in (
    lambda: open_("/etc/passwd"),
    lambda: _socket.socket(),
    lambda: posix.fork(),
    lambda: posix.execv("/bin/true", ["true"]),
    lambda: posix.kill(posix.getppid(), 0),
    lambda: posix.unlink("/nothing"),
    lambda: posix.mkdir("/nothing"),
    lambda: posix.dup2(1, 0),
    lambda: bytearray(2**30),
):
    refused(what)
posix.write(1, b"done")
"""


UNFILTERED = """
import sys
sys.path[:0] = sys.argv[1:]
from cloudsched.scripts.quickjs import child as sandbox
import _socket, errno, posix
sandbox._MACHINES.clear()
assert sandbox.enter_sandbox(2**28, 9) is False
posix.close(0)
posix.close(2)
for open_one in (
    lambda: posix.open("/etc/passwd", posix.O_RDONLY),
    lambda: _socket.socket(),
    lambda: posix.pipe(),
    lambda: posix.dup(1),
    lambda: posix.dup2(1, 0),
):
    try:
        open_one()
    except OSError as error:
        assert error.errno in (errno.EMFILE, errno.EBADF, errno.EINVAL), error
    else:
        posix.write(1, b"opened ")
posix.write(1, b"done")
"""


@linux
@pytest.mark.parametrize(("code", "said"), [(SANDBOXED, "begun done"), (UNFILTERED, "done")], ids=["all", "unfiltered"])
def test_the_sandbox_holds_even_for_machine_code(code: str, said: str) -> None:
    """Python itself in it cannot open, connect, fork or kill anything; without the filter, it still opens nothing."""
    command = [sys.executable, "-I", "-c", code, str(Path(__file__).parents[2] / "src")]
    run = run_to_end(command)
    assert run.stdout == said, run.stderr


def test_without_the_filter_no_script_runs_unless_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that cannot filter system calls runs scripts only if the setting allows it."""
    child = (
        "from posix import read, write\nwrite(1, b'ready, system calls are not filtered\\n')\nread(0, 65536)\n"
        'write(1, b\'{"ended":true,"result":1,"asks":[],"log":[]}\\n\')'
    )
    monkeypatch.setattr("cloudsched.scripts.quickjs.interpreter.CHILD_CODE", child)
    limits = {"memory": 2**25, "time": timedelta(seconds=GENEROUS_SECONDS), "output": OUTPUT}
    refusing: list[QuickJs] = [QuickJs(**limits), QuickJs(**limits, requires_filter=True)]  # type: ignore[arg-type]
    for interpreter in refusing:
        with pytest.raises(Misconfigured, match="CLOUDSCHED_SANDBOX_FILTER"), interpreter.run(script_input("return 1")):
            raise AssertionError("the script was started")
    accepting = QuickJs(**limits, requires_filter=False)  # type: ignore[arg-type]
    with accepting.run(script_input("return 1")) as script:
        assert script.resume((), NOW).result == 1


@linux
def test_other_processes_cannot_inspect_the_parent() -> None:
    """Its memory and variables, which hold the secrets, are closed to a script that broke out."""
    code = (
        "import ctypes\nfrom cloudsched.scripts.quickjs.interpreter import ScriptProcess\n"
        "prctl = ctypes.CDLL(None).prctl\nbefore = prctl(3, 0, 0, 0, 0)\n"
        "ScriptProcess(['/bin/true'], 1, 1).close()\nprint(before, prctl(3, 0, 0, 0, 0))"
    )
    run = run_to_end([sys.executable, "-c", code])
    assert run.stdout.split() == ["1", "0"], run.stderr


# ── What it says is a stranger's word ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "said",
    [
        b"garbage\n",
        b"\xff\xfe\n",
        b'{"ended":1,"result":1,"asks":[],"log":[]}\n',
        b'{"ended":true,"result":NaN,"asks":[],"log":[]}\n',
        b'{"ended":false,"result":1,"asks":[[1,null,-5]],"log":[]}\n',
        b'{"ended":false,"result":1,"asks":[[1,null,1e99]],"log":[]}\n',
        b'{"ended":false,"result":1,"asks":[["1","lookup",{}]],"log":[]}\n',
        b'{"limit":"time to go"}\n',
        b'{"thrown":["Error","no",""]}\n',
        b'{"thrown":["Error","no",""],"asks":[[1]],"log":[]}\n',
        b'{"result":' + b"[" * 30_000 + b"\n",
        b'{"result":' + b"9" * 30_000 + b"}\n",
    ],
    ids=range(12),
)
def test_an_invalid_message_fails_the_script(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """If a script takes over its process, whatever that sends only fails the script."""
    with pytest.raises(ScriptFailed):
        _with_child(monkeypatch, f"write(1, {said!r})")


def test_excess_output_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is read than a script may output."""
    with pytest.raises(LimitExceeded, match="64 KiB"):
        _with_child(monkeypatch, "while True: write(1, b'x' * 65536)")


@pytest.mark.parametrize("code", ["read(0, 1) and exit(3)", "import time; time.sleep(60)"])
def test_a_process_that_exits_or_hangs_is_reported(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """One that exits is reported as dead; one that does not respond is killed in time, even while being written to."""
    with pytest.raises(InterpreterUnavailable if "exit" in code else LimitExceeded):
        _with_child(monkeypatch, code, 0.1 if "sleep" in code else GENEROUS_SECONDS, given="x" * 1_000_000)


@pytest.mark.parametrize(
    "loop", ["while (true);", "const on = () => { Promise.resolve().then(on) }; on(); await sleep(1)"]
)
def test_an_endless_loop_is_stopped_by_the_script_process_itself(monkeypatch: pytest.MonkeyPatch, loop: str) -> None:
    """Processor time counts, so a slow machine kills no script within its limit; the process reports the limit."""
    said: list[bytes | None] = []

    class Heard(ScriptProcess):
        def exchange(self, message: bytes) -> bytes | None:
            said.append(super().exchange(message))
            return said[-1]

    monkeypatch.setattr(
        "cloudsched.scripts.quickjs.interpreter.ScriptProcess", lambda command, _, output: Heard(command, 60, output)
    )
    with limited_interpreter(0.1).run(script_input(loop)) as script, pytest.raises(LimitExceeded, match=r"0\.1 s"):
        script.resume((), NOW)
    assert said == [b'{"limit":"time"}\n']


@linux
def test_a_built_in_that_exhausts_processor_time_is_reported_as_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel kills it before the wall clock limit, and the error names the time limit, so it is not retried."""
    patient = ScriptProcess
    monkeypatch.setattr(
        "cloudsched.scripts.quickjs.interpreter.ScriptProcess", lambda command, _, output: patient(command, 60, output)
    )
    loop = "return Array(2 ** 32 - 1).join('')"
    with limited_interpreter(0.1).run(script_input(loop)) as script, pytest.raises(LimitExceeded, match=r"0\.1 s"):
        script.resume((), NOW)


def test_a_missing_python_is_reported_without_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The script's author reads the error, which must not show paths of the machine."""
    monkeypatch.setattr(sys, "executable", "/not/there/python")
    with (
        pytest.raises(InterpreterUnavailable, match="did not start: No such file") as told,
        limited_interpreter().run(script_input("")),
    ):
        pass
    assert "/not" not in str(told.value)


def _with_child(
    monkeypatch: pytest.MonkeyPatch, code: str, seconds: float = GENEROUS_SECONDS, given: Json = None
) -> None:
    """Run a script in a process that reports ready and then runs `code`."""
    child = f"from posix import read, write\nwrite(1, b'ready\\n')\nread(0, 9)\n{code}\nwhile read(0, 65536): pass"
    monkeypatch.setattr("cloudsched.scripts.quickjs.interpreter.CHILD_CODE", child)
    with limited_interpreter(seconds).run(script_input("return 1", given)) as script:
        script.resume((), NOW)
