"""``cloudsched worker``: runs the tasks of a queue on this machine, which needs no inbound connections."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.exit import exit_now, exit_within
from cloudsched.cli.log_output import configure_line_logging
from cloudsched.cli.main import NO_CREDENTIALS, ExitCode, find_exit_code
from cloudsched.cli.options import find_missing_stack, handlers_option
from cloudsched.cli.signals import SIGNALS, signal_handlers
from cloudsched.config.imports import pause_collection
from cloudsched.errors import CloudschedError, InvalidInput, Misconfigured, NotFound, Unauthenticated
from cloudsched.local.untrusted_text import print_error, to_printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from cloudsched.app import App
    from cloudsched.config.settings import Settings
    from cloudsched.features.pull.work_queue import WorkerFilter
    from cloudsched.local.app_loader import LoadedApp
    from cloudsched.worker.slot import AttemptSummary
    from cloudsched.worker.source import WorkSource
    from cloudsched.worker.worker import Worker

API_TIMEOUT_SECONDS = 10
"""The timeout of one API call: a heartbeat that hangs longer is better sent again."""
THREAD_EXIT_SECONDS = 3.0
"""The seconds for which a stopped worker waits for threads that its handlers have left behind."""
_SECONDS = click.FloatRange(0, 365 * 24 * 3600, min_open=True)
_MAX_NAME_LENGTH = 128


def _validate_name(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """Return the worker's name, by default hostname-pid."""
    name = f"{socket.gethostname()}-{os.getpid()}" if value is None else value
    if not 1 <= len(name) <= _MAX_NAME_LENGTH or not name.isprintable():
        raise click.BadParameter(f"a name has 1 to {_MAX_NAME_LENGTH} printable characters.")
    return name


@click.command()
@click.option("--queue", required=True, help="The queue to claim work from: the one that tasks name in `pull`.")
@click.option("--skill", "skills", multiple=True, help="A skill of this machine, such as cuda. Repeatable.")
@handlers_option("The app with the handlers that can run.")
@click.option(
    "--concurrency", type=click.IntRange(1, 100), default=1, show_default=True, help="How many attempts run at once."
)
@click.option("--owner", help="Run this owner's tasks only.")
@click.option(
    "--name", callback=_validate_name, help="This worker's name in execution records. [default: hostname-pid]"
)
@click.option(
    "--url", envvar="CLOUDSCHED_URL", help="The API's address. '' uses the store directly. [env: CLOUDSCHED_URL]"
)
@click.option("--key", envvar="CLOUDSCHED_KEY", help="An API key. [env: CLOUDSCHED_KEY]")
@click.option("--token", envvar="CLOUDSCHED_TOKEN", help="A Firebase or Google token. [env: CLOUDSCHED_TOKEN]")
@click.option("--platform-token", envvar="CLOUDSCHED_PLATFORM_TOKEN", help="A token for Cloud Run's own IAM check.")
@click.option("--poll", type=_SECONDS, metavar="SECONDS", default=3, show_default=True, help="How often to poll.")
@click.option(
    "--wait",
    type=click.IntRange(0, 20),
    metavar="SECONDS",
    default=10,
    show_default=True,
    help="How long a poll of the API waits for work. The next one follows at once. 0: do not wait.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0, _SECONDS.max),
    metavar="SECONDS",
    default=25,
    show_default=True,
    help="How long running attempts may take to finish on shutdown. 25 fits Kubernetes' 30. Use 7 for Cloud Run's 10.",
)
@click.option(
    "--time-limit",
    type=_SECONDS,
    metavar="SECONDS",
    default=24 * 3600,
    show_default=True,
    help="The longest that one attempt may take. After that its lease is not renewed.",
)
@click.option("--once", is_flag=True, help="Run the work that is waiting now, then exit.")
@click.option("--task", "task_id", metavar="ID", help="Run this waiting task, then exit. The queue has its list.")
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
    wait: int,
    grace: float,
    time_limit: float,
    once: bool,
    task_id: str | None,
) -> None:
    """Run the tasks of a queue on this machine, which needs no inbound connections.

    The worker uses the API if there is a --url, else the store that the environment's settings name. On SIGTERM or
    Ctrl-C it finishes the running attempts or releases them, and stops.
    """
    with pause_collection(keeps_all=True):
        from cloudsched.features.pull.work_queue import WorkerFilter  # noqa: PLC0415 - not needed for --help
        from cloudsched.local.app_loader import load_app  # noqa: PLC0415 - likewise
        from cloudsched.worker.worker import Worker  # noqa: PLC0415 - likewise

    credentials = {"key": key, "token": token, "platform_token": platform_token}
    _require_address(url, credentials)
    loaded = load_app(handlers)
    _configure_logging()
    names = frozenset(handler.name for handler in loaded.app.container.registry)
    worker_filter = WorkerFilter(queue, skills, names, owner, name, task_id)
    once = once or task_id is not None
    _validate_filter(worker_filter, loaded)
    limit = timedelta(seconds=time_limit)
    finished = 0

    def report(summary: AttemptSummary) -> None:
        nonlocal finished
        finished += 1
        _print_attempt(summary)

    with (
        _open_api_source(loaded.app, worker_filter, url, credentials, timedelta(seconds=0 if once else wait))
        if url
        else _open_store_source(loaded.app, worker_filter, limit) as source
    ):
        instance = Worker(
            source,
            concurrency=concurrency,
            poll=timedelta(seconds=poll),
            grace=timedelta(seconds=grace),
            time_limit=limit,
            on_attempt_finished=report,
        )
        try:
            with _stop_on_signals(instance):
                click.echo(_startup_text(source, loaded, concurrency, None if once else poll))
                if url and (hint := find_missing_stack(url)):
                    click.echo(f"worker: {hint}", err=True)
                instance.run(once=once)
            code = ExitCode.DONE
            problem = ""
        except NotFound as error:
            where = f"{source.location} has no worker endpoints. Is that its address, without a path?"
            code = find_exit_code(error)
            problem = str(error) if task_id else f"{where} It answered: {error}"
        except Unauthenticated as error:
            code = find_exit_code(error)
            problem = str(error) if any(credentials.values()) else NO_CREDENTIALS.format(place=source.location)
        except CloudschedError as error:
            code = find_exit_code(error)
            problem = str(error)
    if problem:
        print_error(to_printable(str(problem)))
    elif once and not finished and not instance.was_stopped:
        click.echo(f"Nothing waits in {queue} that this worker may run: check its skills, handlers and owner.")
    _exit(code, at_once=instance.leaves_handlers_running, is_stopped=instance.was_stopped)


def _require_address(url: str | None, credentials: dict[str, str | None]) -> None:
    """Refuse an API credential without an API address: the worker would use the store, without the credential."""
    name = next((name for name, value in credentials.items() if value), None)
    if url is None and name is not None:
        option = name.replace("_", "-")
        raise click.UsageError(
            f"--{option} (CLOUDSCHED_{name.upper()}) is for the API: give its address as well, with --url or "
            "CLOUDSCHED_URL; or --url '' to use the store directly."
        )


def _validate_filter(worker_filter: WorkerFilter, loaded: LoadedApp) -> None:
    """Check the filter before the first request. Raises click.UsageError or Misconfigured."""
    from cloudsched.features.pull.fields import MAX_SKILLS, Pull  # noqa: PLC0415 - likewise

    if not worker_filter.handlers:
        raise Misconfigured(f"{loaded.origin} registers no handler, so this worker has nothing to run.")
    if len(set(worker_filter.skills)) > MAX_SKILLS:
        raise click.UsageError(f"--skill: a worker has at most {MAX_SKILLS} skills.")
    for skill in (None, *worker_filter.skills):
        try:
            Pull(queue=worker_filter.queue, skill=skill)
        except InvalidInput:
            option = f"--queue {worker_filter.queue!r}" if skill is None else f"--skill {skill!r}"
            raise click.UsageError(
                f"{option}: use letters, digits, - and _ (in a skill also dots), at most 64."
            ) from None


@contextmanager
def _open_api_source(
    app: App, worker_filter: WorkerFilter, url: str, credentials: dict[str, Any], wait: timedelta
) -> Iterator[WorkSource]:
    with pause_collection(keeps_all=True):
        from cloudsched.client.client import Client  # noqa: PLC0415 - likewise
        from cloudsched.client.connection import require_address  # noqa: PLC0415 - likewise
        from cloudsched.worker.api_source import ApiSource  # noqa: PLC0415 - likewise

    require_address(url)
    source = ApiSource(
        lambda: Client(url, timeout=API_TIMEOUT_SECONDS, **credentials),
        app.container.registry,
        worker_filter,
        f"the API at {url}",
        wait,
        keeps_print=app.container.settings.keeps_print,
    )
    try:
        yield source
    finally:
        source.close()


@contextmanager
def _open_store_source(app: App, worker_filter: WorkerFilter, time_limit: timedelta) -> Iterator[WorkSource]:
    """Connect the app to the store that the settings name. Durable handlers may run as long as the time limit."""
    from cloudsched.config.settings import Settings  # noqa: PLC0415 - likewise
    from cloudsched.worker.store_source import StoreSource  # noqa: PLC0415 - likewise

    settings = replace(Settings.from_environment(), time_limit=time_limit)
    location = _store_location(settings)
    with app.override(settings):
        try:
            app.container.check_settings()
            yield StoreSource(app, worker_filter, location)
        finally:
            app.close()


def _store_location(settings: Settings) -> str:
    """Describe the store. Raises Misconfigured if the settings name none."""
    match settings.require_store():
        case "firestore":
            emulated = f", emulated at {settings.firestore_emulator}" if settings.firestore_emulator else ""
            return f"Firestore ({settings.project}, {settings.database}{emulated})"
        case "sqlite":
            if settings.data is not None and settings.data.is_file():
                return f"SQLite ({settings.data})"
            problem = "is not set" if settings.data is None else f"is {settings.data}, and there is no such file"
            raise Misconfigured(
                f"CLOUDSCHED_STORE is sqlite, and CLOUDSCHED_DATA {problem}. Name the file of the stack whose tasks "
                "this worker should run, or its API with --url."
            )


def _startup_text(source: WorkSource, loaded: LoadedApp, concurrency: int, poll: float | None) -> str:
    """Describe this worker. `poll` is None if it runs once."""
    worker_filter = source.worker_filter
    skills = f" ({', '.join(sorted(set(worker_filter.skills)))})" if worker_filter.skills else ""
    owner = f" of {worker_filter.owner}" if worker_filter.owner else ""
    handlers = ", ".join(sorted(handler.name for handler in loaded.app.container.registry))
    if poll is None:
        how = "once"
        end = "It ends when the waiting work has run."
    else:
        how = "listens for new work" if source.can_listen or source.wait else f"polls every {poll:g} s"
        end = "Ctrl-C stops it."
    return (
        f"{worker_filter.worker}: queue {worker_filter.queue}{skills}{owner}, from {source.location}, {how}, "
        f"{concurrency} at a time; handlers {handlers} ({loaded.origin}). {end}"
    )


def _print_attempt(summary: AttemptSummary) -> None:
    task = summary.work.task
    run = summary.work.run
    reason = f": {summary.reason}" if summary.reason else ""
    attempt = f"attempt {run.attempt}, " if run.attempt > 1 or summary.status in {"failed", "retrying"} else ""
    line = f"{summary.status:<9}  {task.id}  {task.title}  ({attempt}{summary.seconds:.1f} s){reason}"
    click.echo(to_printable(line))
    for trace_line in summary.traceback.splitlines():
        click.echo(f"  {to_printable(trace_line)}", err=True)


@contextmanager
def _stop_on_signals(worker: Worker) -> Iterator[None]:
    def stop(_signum: int, _frame: FrameType | None) -> None:
        worker.stop()

    # A signal that is ignored was ignored by the parent process, such as nohup.
    handled = [signum for signum in SIGNALS if signal.getsignal(signum) is not signal.SIG_IGN]
    with signal_handlers(stop, handled):
        yield


def _exit(code: int, *, at_once: bool, is_stopped: bool) -> None:
    """End the process without waiting for handlers that still run.

    A stopped worker also waits only `THREAD_EXIT_SECONDS` for what its handlers have left behind, such as a pool.
    """
    if at_once:
        exit_now(code)
    if is_stopped:
        exit_within(THREAD_EXIT_SECONDS, code, "worker")
    sys.exit(code)


def _configure_logging() -> None:
    """Print what handlers log, and the worker's own warnings. In the cloud, use the format of Cloud Logging.

    Outcomes are printed on a line of their own, which is why the event log's lines are not.
    """
    from cloudsched.config.settings import Settings  # noqa: PLC0415 - likewise
    from cloudsched.runtime.telemetry import configure_cloud_logging  # noqa: PLC0415 - likewise

    with suppress(Misconfigured):  # through the API, the worker needs no settings
        settings = Settings.from_environment()
        if settings.is_deployed:
            configure_cloud_logging(settings)
            return
    configure_line_logging(lambda: "worker:", _is_for_workers)


def _is_for_workers(record: logging.LogRecord) -> bool:
    is_own = record.name.partition(".")[0] == "cloudsched"
    return not is_own or (record.levelno >= logging.WARNING and record.name != "cloudsched.events")
