"""``cloudsched run``: one attempt of a handler, or with --durable all of it; what is printed, and the exit code."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import CommandResult

from cloudsched.cli.main import ExitCode

Run = Callable[..., CommandResult]

HANDLERS = """
import logging
import os
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel

from cloudsched import App, AsyncContext, Context, Depends, Snooze

app = App()


class Name(BaseModel):
    name: str


def open_greeting():
    yield "hello"


@app.handler("greet", pull="gpu")
def greet(ctx: Context, name: Name, greeting: Annotated[str, Depends(open_greeting)]) -> dict[str, object]:
    logging.getLogger("mine").info("greeting %s", name.name)
    ctx.notify("Hello", name.name)
    return {"text": f"{greeting} {name.name}", "owner": ctx.task.owner, "attempt": ctx.attempt}


@app.handler("greet-later")
async def greet_later(ctx: AsyncContext) -> str:
    text = await ctx.step("text", lambda: "later")
    await ctx.sleep(timedelta(days=30))
    return text


@app.handler("broken", retry=3)
def broken() -> None:
    raise ValueError("no\\x1b[2J such thing")


@app.handler("third-time", retry=3)
def third_time(ctx: Context) -> int:
    if ctx.attempt < 3:
        raise ValueError("not yet")
    return ctx.attempt


@app.handler("parent")
def parent(ctx: Context) -> str:
    return ctx.call("third-time").result()
"""


@pytest.fixture(name="run")
def type_run(run_command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Type the command in a folder with these handlers."""
    (tmp_path / "handlers.py").write_text(HANDLERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    return lambda *words: run_command("run", *words)


def test_one_attempt_has_all_that_a_handler_gets(run: Run) -> None:
    """Payload, context, dependencies and log; the result alone is on standard output, and nothing waits for workers."""
    done = run("greet", "--payload", '{"name": "Ada"}', "--owner", "grace")
    assert json.loads(done.out) == {"text": "hello Ada", "owner": "grace", "attempt": 1}
    assert "greet (attempt 1): greeting Ada" in done.err
    assert "inbox of grace: Hello: Ada" in done.err
    assert done.code == 0


@pytest.mark.parametrize("source", ["@payload.json", "-"])
def test_the_payload_may_be_in_a_file(source: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named, or on standard input."""
    (tmp_path / "payload.json").write_text('{"name": "Ada"}')
    monkeypatch.setattr("sys.stdin", io.StringIO('{"name": "Ada"}'))
    assert json.loads(run("greet", "--payload", source).out)["text"] == "hello Ada"


def test_a_failed_attempt_shows_its_traceback_and_is_not_retried(run: Run) -> None:
    """Exit code 1, nothing on standard output, and no control character on the terminal."""
    failed = run("broken")
    assert (failed.code, failed.out) == (1, "")
    assert "in broken" in failed.err
    assert "RETRYING (--durable" in failed.err
    assert "ValueError: no [2J such thing" in failed.err.replace("\x1b", "?")
    assert "\x1b" not in failed.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("greet",), "payload.name"),
        (("greet", "--payload", "{"), "--payload is not JSON"),
        (("greet", "--payload", "[" * 100_000), "--payload is not JSON"),
        (("nobody",), "there is no handler named 'nobody'"),
        (("greet", "--handlers", "none.py"), "There is no file none.py"),
        (("greet-later", "--skip-waits"), "--skip-waits is for --durable"),
    ],
    ids=str,
)
def test_what_cannot_be_run_is_an_error(words: tuple[str, ...], why: str, run: Run) -> None:
    """Nothing is printed, and the reason in a sentence; what is refused is told from what is mistyped."""
    refused = run(*words)
    assert (refused.code in {ExitCode.USAGE, ExitCode.REFUSED}, refused.out) == (True, "")
    assert why in refused.err


def test_a_folder_without_handlers_runs_none(run: Run, tmp_path: Path) -> None:
    """Not even one of our own that has the name."""
    (tmp_path / "handlers.py").unlink()
    refused = run("remind", "--payload", '{"text": "Tea"}')
    assert refused.code == ExitCode.USAGE
    assert "There is no functions/handlers.py or handlers.py here" in refused.err


def test_a_durable_handler_stops_at_its_first_wait(run: Run) -> None:
    """One attempt is one attempt: the steps so far are shown, and the option that goes on."""
    stopped = run("greet-later")
    assert (stopped.code, stopped.out) == (1, "")
    assert "1. step text" in stopped.err
    assert "SUSPENDED" in stopped.err
    assert "--durable runs it to its end" in stopped.err


@pytest.mark.parametrize(("handler", "result"), [("greet-later", '"later"'), ("parent", "3")])
def test_durable_runs_to_the_end(handler: str, result: str, run: Run) -> None:
    """With the local stack: a sleep of thirty days, calls and retries; the clock is moved instead of waited for."""
    done = run(handler, "--durable", "--skip-waits")
    assert (done.code, done.out.strip()) == (0, result), done.err
