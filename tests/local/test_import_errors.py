"""Handler files that cannot be imported: the error that each command shows to their authors."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudsched.cli import main as cli


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory; modules imported from it are forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(logging.getLogger("cloudsched"), "handlers", [])
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")) or name.startswith("bad"):
            del sys.modules[name]


def error_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """Return a misconfigured command's errors; it exits with 2, as docs/guides/workers.md promises systemd."""
    monkeypatch.setattr(sys, "argv", ["cloudsched", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    return output.err.splitlines()


CASES = {
    "an unclosed bracket": (b"x = 1\nprint((1, 2)\n", ["cloudsched: bad.py, line 2: '(' was never closed"]),
    "no UTF-8": (b"x = 'caf\xe9'\n", ["cloudsched: bad.py, line 1: "]),
    "a mistake at module level": (
        b"x = 1\nx / 0\n",
        ["cloudsched: bad.py cannot be imported: ZeroDivisionError: division by zero", "  bad.py, line 2: x / 0"],
    ),
    "a module that is not there": (
        b"import nosuchmodule\n",
        [
            "cloudsched: bad.py cannot be imported: No module named 'nosuchmodule'. Is it installed?",
            "  bad.py, line 1: import nosuchmodule",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_error_in_a_handler_file_is_reported_with_its_line(
    case: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is wrong with the file, its author reads what, and in which line of theirs: no traceback of ours."""
    source, expected = CASES[case]
    (folder / "bad.py").write_bytes(source)
    lines = error_lines(capsys, monkeypatch, "dev", "--store", "sqlite", "--handlers", "bad.py")
    assert len(lines) == len(expected)
    for line, beginning in zip(lines, expected, strict=True):
        assert line.startswith(beginning)


@pytest.mark.parametrize("where", ["bad/", "", "bad..worse"])
def test_an_invalid_module_name_is_refused(
    where: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is imported whose name cannot be one."""
    (line,) = error_lines(capsys, monkeypatch, "worker", "--queue", "gpu", "--handlers", where)
    assert line.endswith("is not a module. Name a module, or a file that ends in .py.")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is one in a folder that may not be looked into."""
    inner = folder / "inner"
    inner.mkdir()
    (inner / "bad.py").touch(mode=0)
    for mode in (0o700, 0):
        inner.chmod(mode)
        (line, *_) = error_lines(capsys, monkeypatch, "worker", "--queue", "gpu", "--handlers", "inner/bad.py")
        assert "inner/bad.py cannot be read: Permission denied." in line
    inner.chmod(0o700)


def test_a_worker_does_not_serve_the_examples(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker started in the wrong folder reports that, whereas `dev` falls back to the package's examples."""
    (line,) = error_lines(capsys, monkeypatch, "worker", "--queue", "gpu")
    assert line == (
        "cloudsched: There is no functions/handlers.py or handlers.py here. Change to the folder that has it, or name "
        "the file with your handlers: --handlers FILE."
    )
