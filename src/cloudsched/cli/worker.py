"""``cloudsched worker``: run what waits in a queue on this machine, which nobody needs to reach."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.main import NO_PROOF
from cloudsched.cli.signals import SIGNALS, heard
from cloudsched.errors import CloudschedError, Misconfigured, NotFound, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from cloudsched.app import App
    from cloudsched.config.settings import Settings
    from cloudsched.engine.pull.offers import Wanted
    from cloudsched.local.app_loader import Loaded
    from cloudsched.worker.slot import Ended
    from cloudsched.worker.source import Desk
    from cloudsched.worker.worker import Worker

_API_SECONDS = 10
"""How long to wait for one answer of the API: a heartbeat that hangs for longer is better sent again."""
_LEFT_BEHIND = 3.0
"""How many seconds a worker that was stopped waits for threads that its handlers have left behind."""
_YEAR = 365 * 24 * 3600
_LONGEST_NAME = 128
_LONGEST_LINE = 4000


class _Seconds(click.FloatRange):
    """A number of seconds that there are: up to a year."""

    def __init__(self, *, min_open: bool = False) -> None:
        super().__init__(0, _YEAR, min_open=min_open)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):  # it is neither below nor above a bound
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return seconds


def _readable(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """Return what the worker calls itself: what was said, or something that tells it from all others."""
    name = f"{socket.gethostname()}-{os.getpid()}" if value is None else value
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        raise click.BadParameter(f"a name has 1 to {_LONGEST_NAME} characters that can be printed.")
    return name


@click.command()
@click.option("--queue", required=True, help="The queue to take work from: what tasks name as `pull`.")
@click.option("--skill", "skills", multiple=True, help="What this machine can do besides, such as cuda. Repeat it.")
@click.option(
    "--handlers", metavar="FILE|MODULE[:APP]", help="What can be run. [default: functions/handlers.py or handlers.py]"
)
@click.option("--concurrency", type=click.IntRange(1, 100), default=1, show_default=True, help="How many at once.")
@click.option("--owner", help="Run this owner's tasks only.")
@click.option(
    "--name",
    callback=_readable,
    help="What the records call this worker. [default: its host's name and its process id]",
)
@click.option("--url", envvar="CLOUDSCHED_URL", help="The API's address; '' works at the store. [env: CLOUDSCHED_URL]")
@click.option("--key", envvar="CLOUDSCHED_KEY", help="An API key. [env: CLOUDSCHED_KEY]")
@click.option("--token", envvar="CLOUDSCHED_TOKEN", help="A Firebase or Google token. [env: CLOUDSCHED_TOKEN]")
@click.option("--platform-token", envvar="CLOUDSCHED_PLATFORM_TOKEN", help="A token for Cloud Run's own check.")
@click.option(
    "--poll", type=_Seconds(min_open=True), metavar="SECONDS", default=3, show_default=True, help="How often to look."
)
@click.option(
    "--grace",
    type=_Seconds(),
    metavar="SECONDS",
    default=25,
    show_default=True,
    help="How long running attempts may go on once it is to stop. 25 fits Kubernetes' 30; take 7 for Cloud Run's 10.",
)
@click.option(
    "--time-limit",
    type=_Seconds(min_open=True),
    metavar="SECONDS",
    default=24 * 3600,
    show_default=True,
    help="How long one attempt may take; its lease is not renewed after that.",
)
@click.option("--once", is_flag=True, help="Run what is there now, then exit.")
def worker(  # noqa: PLR0913 - one argument for each option
    *,
    queue: str,
    skills: tuple[str, ...],
    handlers: str | None,
    concurrency: int,
    owner: str | None,
    name: str,
    url: str | None,
    key: str | None,
    token: str | None,
    platform_token: str | None,
    poll: float,
    grace: float,
    time_limit: float,
    once: bool,
) -> None:
    """Run the tasks of a queue on this machine, which nobody needs to reach.

    It works through the API if there is a --url, else at the store that the settings in the environment name. SIGTERM
    and Ctrl-C stop it: it finishes what runs, or gives it back.
    """
    from cloudsched.engine.pull.offers import Wanted  # noqa: PLC0415 - --help needs none of it
    from cloudsched.local.app_loader import load  # noqa: PLC0415 - the same
    from cloudsched.worker.worker import Worker  # noqa: PLC0415 - the same

    proofs = {"key": key, "token": token, "platform_token": platform_token}
    _require_address(url, proofs)
    _show_log()
    loaded = load(handlers, or_examples=False)
    names = frozenset(handler.name for handler in loaded.app.registry)
    wanted = Wanted(queue, skills, names, owner, name)
    _require_sense(wanted, loaded)
    limit = timedelta(seconds=time_limit)
    ended = 0

    def heard_of(what: Ended) -> None:
        nonlocal ended
        ended += 1
        _tell(what)

    with _through_api(loaded.app, wanted, url, proofs) if url else _at_store(loaded.app, wanted, limit) as desk:
        made = Worker(
            desk,
            concurrency=concurrency,
            poll=timedelta(seconds=poll),
            grace=timedelta(seconds=grace),
            time_limit=limit,
            tell=heard_of,
        )
        click.echo(_introduction(desk, loaded, concurrency, None if once else poll))
        try:
            with _stopped_by_signals(made):
                made.run(once=once)
            code, problem = 0, ""
        except NotFound as error:
            where = f"{desk.place} has no queues for workers. Is that its address, without a path?"
            code, problem = 2, f"{where} It answered: {error}"
        except Unauthenticated as error:
            code, problem = 2, str(error) if any(proofs.values()) else NO_PROOF.format(place=desk.place)
        except CloudschedError as error:
            code, problem = 2, str(error)
    if problem:
        click.echo(_shown(f"cloudsched: {problem}"), err=True)
    elif once and not ended and not made.was_stopped:
        click.echo(f"Nothing waits in {queue} that this worker may run: see skill, handlers, owner.")
    _exit(code, at_once=made.leaves_handlers_running, is_stopped=made.was_stopped)


def _require_address(url: str | None, proofs: dict[str, str | None]) -> None:
    """Refuse a proof for an API of which nobody has said where it is: the store would be asked, and not for it."""
    given = next((name for name, proof in proofs.items() if proof), None)
    if url is None and given is not None:
        option = given.replace("_", "-")
        raise click.UsageError(
            f"--{option} (CLOUDSCHED_{given.upper()}) is for the API: give its address, too, with --url or "
            "CLOUDSCHED_URL; or --url '' to work at the store."
        )


def _require_sense(wanted: Wanted, loaded: Loaded) -> None:
    """Check what can be checked before anything is asked. Raises click.UsageError or Misconfigured."""
    from cloudsched.domain.documents.pull import MAX_SKILLS, Pull  # noqa: PLC0415 - as above

    if not wanted.handlers:
        raise Misconfigured(f"{loaded.origin} registers no handler, so there is nothing that this worker could run.")
    if len(set(wanted.skills)) > MAX_SKILLS:
        raise click.UsageError(f"--skill: a worker has at most {MAX_SKILLS} skills.")
    for skill in (None, *wanted.skills):
        try:
            Pull(queue=wanted.queue, skill=skill)
        except ValueError:
            said = f"--queue {wanted.queue!r}" if skill is None else f"--skill {skill!r}"
            raise click.UsageError(f"{said}: letters, digits, - and _ (a skill: dots, too), at most 64.") from None


@contextmanager
def _through_api(app: App, wanted: Wanted, url: str, proofs: dict[str, str | None]) -> Iterator[Desk]:
    from cloudsched.client.client import Client  # noqa: PLC0415 - as above
    from cloudsched.client.connection import require_address  # noqa: PLC0415 - as above
    from cloudsched.worker.api_source import ApiDesk  # noqa: PLC0415 - as above

    require_address(url)
    desk = ApiDesk(lambda: Client(url, timeout=_API_SECONDS, **proofs), app.registry, wanted, f"the API at {url}")
    try:
        yield desk
    finally:
        desk.close()


@contextmanager
def _at_store(app: App, wanted: Wanted, time_limit: timedelta) -> Iterator[Desk]:
    """Let the app use the store that the settings name; a durable handler may go on for as long as an attempt may."""
    from cloudsched.config.settings import Settings  # noqa: PLC0415 - as above
    from cloudsched.worker.store_source import AppDesk  # noqa: PLC0415 - as above

    settings = replace(Settings.from_environment(), time_limit=time_limit)
    place = _place(settings)
    with app.replaced(settings):
        try:
            yield AppDesk(app, wanted, place)
        finally:
            app.close()


def _place(settings: Settings) -> str:
    """Say where the store is. Raises Misconfigured if that is nowhere."""
    if settings.store == "firestore":
        emulated = f", emulated at {settings.firestore_emulator}" if settings.firestore_emulator else ""
        return f"Firestore ({settings.project}, {settings.database}{emulated})"
    if settings.data is None or not settings.data.is_file():
        what = "is not set" if settings.data is None else f"is {settings.data}, and there is no such file"
        raise Misconfigured(
            f"CLOUDSCHED_STORE is sqlite, and CLOUDSCHED_DATA {what}. Name the file of the stack whose tasks this "
            "worker is to run; or its API, with --url."
        )
    return f"SQLite ({settings.data})"


def _introduction(desk: Desk, loaded: Loaded, concurrency: int, poll: float | None) -> str:
    """Say what this worker does; `poll` is None if it looks once."""
    wanted = desk.wanted
    skills = f" ({', '.join(sorted(set(wanted.skills)))})" if wanted.skills else ""
    owner = f" of {wanted.owner}" if wanted.owner else ""
    handlers = ", ".join(sorted(handler.name for handler in loaded.app.registry))
    if poll is None:
        how, end = "once", "It ends when what is there has run."
    else:
        how, end = "listens for new work" if desk.listens else f"looks every {poll:g} s", "Ctrl-C stops it."
    return (
        f"{wanted.worker}: queue {wanted.queue}{skills}{owner}, from {desk.place}, {how}, {concurrency} at a time; "
        f"handlers {handlers} ({loaded.origin}). {end}"
    )


def _tell(ended: Ended) -> None:
    """Print what became of an attempt, in one line."""
    task, run = ended.assignment.task, ended.assignment.run
    why = f": {ended.why}" if ended.why else ""
    attempt = f"attempt {run.attempt}, " if run.attempt > 1 or ended.what in {"failed", "retrying"} else ""
    line = f"{ended.what:<9}  {task.id}  {task.title}  ({attempt}{ended.seconds:.1f} s){why}"
    click.echo(_shown(line))


def _shown(line: str) -> str:
    """Return a line without control characters, which would move the cursor of whoever looks."""
    line = line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + " …"
    return "".join(letter if letter.isprintable() else " " for letter in line)


@contextmanager
def _stopped_by_signals(made: Worker) -> Iterator[None]:
    def stop(_signum: int, _frame: FrameType | None) -> None:
        made.stop()

    # What is ignored was ignored by whoever has started this process, such as nohup.
    heeded = [signum for signum in SIGNALS if signal.getsignal(signum) is not signal.SIG_IGN]
    with heard(stop, heeded):
        yield


def _exit(code: int, *, at_once: bool, is_stopped: bool) -> None:
    """End the process; handlers that still run are not waited for, nor may they get into the way of its end.

    A worker that was stopped does not wait for long either for what its handlers have left behind, such as a pool.
    """
    if at_once:
        _leave(code)
    if is_stopped:
        left_behind = threading.Timer(_LEFT_BEHIND, _leave, (code, "threads that handlers left behind go on; it ends"))
        left_behind.daemon = True
        left_behind.start()
    sys.exit(code)


def _leave(code: int, why: str = "") -> None:
    if why:
        os.write(sys.stderr.fileno(), f"worker: {why}\n".encode())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class _Lines(logging.Formatter):
    """Log lines with the task that they are about."""

    def format(self, record: logging.LogRecord) -> str:
        about = f"{task}: " if (task := getattr(record, "taskId", None)) else ""
        trace = self.formatException(record.exc_info).splitlines() if record.exc_info else ()
        return "\n".join(_shown(line) for line in (f"worker: {about}{record.getMessage()}", *trace))


def _show_log() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines())
    handler.setLevel(logging.WARNING)
    logging.getLogger("cloudsched").addHandler(handler)
