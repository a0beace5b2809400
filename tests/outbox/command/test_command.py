"""``cloudsched outbox``: the relay as a process, and what to do about rows that were refused."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import create_engine, text
from tests.harness import process, wait_until

from cloudsched.cli.main import cloudsched
from cloudsched.errors import Misconfigured, NotFound

FILE = """
from pathlib import Path

from cloudsched import App, Settings
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

HERE = Path(__file__).parent


class NoQueue:
    def create(self, message): ...
    def close(self): ...
    def purge(self): ...


engine = create_engine(f"sqlite:///{HERE / 'shop.db'}")
app = App(Settings(store="sqlite", data=HERE / "tasks.db", secret="x" * 32), dispatcher=NoQueue())
app.handler("greet")(lambda: None)
outbox = SqlalchemyOutbox(engine, app)
outbox.create_table()


def write():
    with Session(engine) as session, session.begin():
        outbox.create(session, handler="greet", id="greeting", schedule="in 1 hour")
        outbox.cancel(session, "unknown")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file with an outbox in which two rows wait, one of which will be refused."""
    path = tmp_path / "shop_outbox.py"
    path.write_text(FILE, encoding="utf-8")
    names: dict[str, object] = {"__file__": str(path)}
    exec(compile(FILE + "\nwrite()\nengine.dispose()", str(path), "exec"), names)  # noqa: S102 - our own
    return path


def run(*arguments: object) -> list[str]:
    done = CliRunner().invoke(cloudsched, ["outbox", *map(str, arguments)], catch_exceptions=False)
    return (done.stdout or done.stderr).splitlines()


def count(file: Path, state: str) -> int:
    engine = create_engine(f"sqlite:///{file.parent / 'shop.db'}")
    with engine.connect() as connection:
        found = connection.scalar(text("SELECT count(*) FROM cloudsched_outbox WHERE state = :state"), {"state": state})
    engine.dispose()
    return int(found or 0)


def test_rows_that_were_refused_are_listed_retried_and_discarded(file: Path) -> None:
    """One after the other, or all at once."""
    assert run("relay", file, "--once") == ["1 handed over."]
    (line,) = run("failed", file)
    row, action, task_id, _, error = line.split("  ")
    assert (action, task_id, error) == ("CANCEL", "unknown", "NotFound: There is no task 'unknown'.")
    assert run("retry", file, row) == [f"{row} is handed over again."]
    assert not run("failed", file)
    assert run("relay", file, "--once") == ["0 handed over."]
    assert run("discard", file, "--all") == [f"{row} is deleted."]
    assert not run("failed", file)
    with pytest.raises(NotFound):
        run("retry", file, row)
    for wrong in ([], [row, "--all"]):
        assert "Name rows, or give --all." in run("discard", file, *wrong)[-1]


def test_a_file_without_an_outbox_is_named(tmp_path: Path) -> None:
    """With what to write."""
    (tmp_path / "nothing.py").write_text("")
    with pytest.raises(Misconfigured, match=r"has no outbox\. Write .*SqlalchemyOutbox"):
        run("failed", tmp_path / "nothing.py")
    with pytest.raises(Misconfigured, match="Name the file with your outbox"):
        run("failed", tmp_path / "missing.py")


def test_the_relay_hands_over_until_it_is_stopped(file: Path) -> None:
    """As a process, which ends with code 0 on SIGTERM."""
    command = (sys.executable, "-m", "cloudsched", "outbox", "relay", str(file), "--poll", "0.05")
    with process(*command, env=None) as relay:
        wait_until(lambda: count(file, "DONE") == count(file, "FAILED") == 1, relay.output)
        assert "Ctrl-C stops it." in relay.output
        relay.signal(signal.SIGTERM)
        assert relay.wait() == 0
