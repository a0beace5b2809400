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

from cloudsched.cli.main import NO_CREDENTIALS
from cloudsched.cli.signals import SIGNALS, signal_handlers
from cloudsched.errors import CloudschedError, Misconfigured, NotFound, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from cloudsched.app import App
    from cloudsched.config.settings import Settings
    from cloudsched.engine.pull.offers import WorkerFilter
    from cloudsched.local.app_loader import LoadedApp
    from cloudsched.worker.slot import AttemptSummary
    from cloudsched.worker.source import WorkSource
    from cloudsched.worker.worker import Worker

_API_TIMEOUT_SECONDS = 10
"""How long to wait for one answer of the API: a heartbeat that hangs for longer is better sent again."""
_THREAD_EXIT_SECONDS = 3.0
"""How many seconds a worker that was stopped waits for threads that its handlers have left behind."""
_YEAR = 365 * 24 * 3600
_MAX_NAME_LENGTH = 128
_MAX_LINE_LENGTH = 4000


class _Seconds(click.FloatRange):
    """A number of seconds that there are: up to a year."""

    def __init__(self, *, min_open: bool = False) -> None:
        super().__init__(0, _YEAR, min_open=min_open)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):  # it is neither below nor above a bound
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return seconds


def _validate_name(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """Return what the worker calls itself: what was said, or something that tells it from all others."""
    name = f"{socket.gethostname()}-{os.getpid()}" if value is None else value
    if not 1 <= len(name) <= _MAX_NAME_LENGTH or not name.isprintable():
        raise click.BadParameter(f"a name has 1 to {_MAX_NAME_LENGTH} characters that can be printed.")
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
    callback=_validate_name,
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
    from cloudsched.engine.pull.offers import WorkerFilter  # noqa: PLC0415 - --help needs none of it
    from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - the same
    from cloudsched.worker.worker import Worker  # noqa: PLC0415 - the same

    proofs = {"key": key, "token": token, "platform_token": platform_token}
    _require_address(url, proofs)
    _configure_logging()
    loaded = load_app(handlers, or_examples=False)
    names = frozenset(handler.name for handler in loaded.app.registry)
    wanted = WorkerFilter(queue, skills, names, owner, name)
    _validate_filter(wanted, loaded)
    limit = timedelta(seconds=time_limit)
    ended = 0

    def heard_of(what: AttemptSummary) -> None:
        nonlocal ended
        ended += 1
        _print_attempt(what)

    with (
        _open_api_source(loaded.app, wanted, url, proofs)
        if url
        else _open_store_source(loaded.app, wanted, limit) as desk
    ):
        made = Worker(
            desk,
            concurrency=concurrency,
            poll=timedelta(seconds=poll),
            grace=timedelta(seconds=grace),
            time_limit=limit,
            on_attempt_finished=heard_of,
        )
        click.echo(_startup_text(desk, loaded, concurrency, None if once else poll))
        try:
            with _stop_on_signals(made):
                made.run(once=once)
            code, problem = 0, ""
        except NotFound as error:
            where = f"{desk.location} has no queues for workers. Is that its address, without a path?"
            code, problem = 2, f"{where} It answered: {error}"
        except Unauthenticated as error:
            code, problem = 2, str(error) if any(proofs.values()) else NO_CREDENTIALS.format(place=desk.location)
        except CloudschedError as error:
            code, problem = 2, str(error)
    if problem:
        click.echo(_to_printable_line(f"cloudsched: {problem}"), err=True)
    elif once and not ended and not made.was_stopped:
        click.echo(f"Nothing waits in {queue} that this worker may run: see skill, handlers, owner.")
    _exit(code, at_once=made.leaves_handlers_running, is_stopped=made.was_stopped)


def _require_address(url: str | None, credentials: dict[str, str | None]) -> None:
    """Refuse a proof for an API of which nobody has said where it is: the store would be asked, and not for it."""
    given = next((name for name, proof in credentials.items() if proof), None)
    if url is None and given is not None:
        option = given.replace("_", "-")
        raise click.UsageError(
            f"--{option} (CLOUDSCHED_{given.upper()}) is for the API: give its address, too, with --url or "
            "CLOUDSCHED_URL; or --url '' to work at the store."
        )


def _validate_filter(worker_filter: WorkerFilter, loaded: LoadedApp) -> None:
    """Check what can be checked before anything is asked. Raises click.UsageError or Misconfigured."""
    from cloudsched.domain.documents.pull import MAX_SKILLS, Pull  # noqa: PLC0415 - as above

    if not worker_filter.handlers:
        raise Misconfigured(f"{loaded.origin} registers no handler, so there is nothing that this worker could run.")
    if len(set(worker_filter.skills)) > MAX_SKILLS:
        raise click.UsageError(f"--skill: a worker has at most {MAX_SKILLS} skills.")
    for skill in (None, *worker_filter.skills):
        try:
            Pull(queue=worker_filter.queue, skill=skill)
        except ValueError:
            said = f"--queue {worker_filter.queue!r}" if skill is None else f"--skill {skill!r}"
            raise click.UsageError(f"{said}: letters, digits, - and _ (a skill: dots, too), at most 64.") from None


@contextmanager
def _open_api_source(
    app: App, worker_filter: WorkerFilter, url: str, credentials: dict[str, str | None]
) -> Iterator[WorkSource]:
    from cloudsched.client.client import Client  # noqa: PLC0415 - as above
    from cloudsched.client.connection import require_address  # noqa: PLC0415 - as above
    from cloudsched.worker.api_source import ApiSource  # noqa: PLC0415 - as above

    require_address(url)
    desk = ApiSource(
        lambda: Client(url, timeout=_API_TIMEOUT_SECONDS, **credentials),
        app.registry,
        worker_filter,
        f"the API at {url}",
    )
    try:
        yield desk
    finally:
        desk.close()


@contextmanager
def _open_store_source(app: App, worker_filter: WorkerFilter, time_limit: timedelta) -> Iterator[WorkSource]:
    """Let the app use the store that the settings name; a durable handler may go on for as long as an attempt may."""
    from cloudsched.config.settings import Settings  # noqa: PLC0415 - as above
    from cloudsched.worker.store_source import StoreSource  # noqa: PLC0415 - as above

    settings = replace(Settings.from_environment(), time_limit=time_limit)
    place = _store_location(settings)
    with app.override(settings):
        try:
            yield StoreSource(app, worker_filter, place)
        finally:
            app.close()


def _store_location(settings: Settings) -> str:
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


def _startup_text(source: WorkSource, loaded: LoadedApp, concurrency: int, poll: float | None) -> str:
    """Say what this worker does; `poll` is None if it looks once."""
    wanted = source.worker_filter
    skills = f" ({', '.join(sorted(set(wanted.skills)))})" if wanted.skills else ""
    owner = f" of {wanted.owner}" if wanted.owner else ""
    handlers = ", ".join(sorted(handler.name for handler in loaded.app.registry))
    if poll is None:
        how, end = "once", "It ends when what is there has run."
    else:
        how, end = "listens for new work" if source.can_listen else f"looks every {poll:g} s", "Ctrl-C stops it."
    return (
        f"{wanted.worker}: queue {wanted.queue}{skills}{owner}, from {source.location}, {how}, {concurrency} at a time; "
        f"handlers {handlers} ({loaded.origin}). {end}"
    )


def _print_attempt(summary: AttemptSummary) -> None:
    """Print what became of an attempt, in one line."""
    task, run = summary.work.task, summary.work.run
    why = f": {summary.reason}" if summary.reason else ""
    attempt = f"attempt {run.attempt}, " if run.attempt > 1 or summary.status in {"failed", "retrying"} else ""
    line = f"{summary.status:<9}  {task.id}  {task.title}  ({attempt}{summary.seconds:.1f} s){why}"
    click.echo(_to_printable_line(line))


def _to_printable_line(line: str) -> str:
    """Return a line without control characters, which would move the cursor of whoever looks."""
    line = line if len(line) <= _MAX_LINE_LENGTH else line[:_MAX_LINE_LENGTH] + " …"
    return "".join(letter if letter.isprintable() else " " for letter in line)


@contextmanager
def _stop_on_signals(worker: Worker) -> Iterator[None]:
    def stop(_signum: int, _frame: FrameType | None) -> None:
        worker.stop()

    # What is ignored was ignored by whoever has started this process, such as nohup.
    heeded = [signum for signum in SIGNALS if signal.getsignal(signum) is not signal.SIG_IGN]
    with signal_handlers(stop, heeded):
        yield


def _exit(code: int, *, at_once: bool, is_stopped: bool) -> None:
    """End the process; handlers that still run are not waited for, nor may they get into the way of its end.

    A worker that was stopped does not wait for long either for what its handlers have left behind, such as a pool.
    """
    if at_once:
        _hard_exit(code)
    if is_stopped:
        left_behind = threading.Timer(
            _THREAD_EXIT_SECONDS, _hard_exit, (code, "threads that handlers left behind go on; it ends")
        )
        left_behind.daemon = True
        left_behind.start()
    sys.exit(code)


def _hard_exit(code: int, why: str = "") -> None:
    if why:
        os.write(sys.stderr.fileno(), f"worker: {why}\n".encode())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class _TaskLogFormatter(logging.Formatter):
    """Log lines with the task that they are about."""

    def format(self, record: logging.LogRecord) -> str:
        about = f"{task}: " if (task := getattr(record, "taskId", None)) else ""
        trace = self.formatException(record.exc_info).splitlines() if record.exc_info else ()
        return "\n".join(_to_printable_line(line) for line in (f"worker: {about}{record.getMessage()}", *trace))


def _configure_logging() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_TaskLogFormatter())
    handler.setLevel(logging.WARNING)
    logging.getLogger("cloudsched").addHandler(handler)
