"""Workers in their own processes: stopped, killed, two at the same time, and without a reachable API."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests.harness import WAIT_SECONDS, Process, free_port, new_project, process, wait_until
from tests.instants import MINUTE
from tests.stories.worker_stack import HANDLERS, HASTY, WorkerStack, open_worker_stack
from werkzeug.wrappers import Request, Response

from cloudsched.cli.main import ExitCode
from cloudsched.config.access import Access
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role
from cloudsched.web.functions import wsgi


@pytest.fixture(params=["store", "api"])
def worker_stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WorkerStack]:
    with open_worker_stack(tmp_path, request.param) as made:
        yield made


def test_a_worker_at_firestore_is_notified_of_work(tmp_path: Path, firestore_address: str) -> None:
    """It polls every ten minutes, so all tasks but the first can only run after a notification; then it is stopped."""
    project = new_project()
    with open_worker_stack(
        tmp_path, "store", "firestore", firestore_emulator=firestore_address, project=project
    ) as worker_stack:
        with worker_stack.worker("--poll", "600") as worker:
            worker.wait_for("queue gpu, from Firestore")
            for _ in range(3):
                task = worker_stack.create("note")
                worker.wait_for(f"succeeded +{task}")
                assert worker_stack.record(task).status == "SUCCEEDED"
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0, worker.output
        notes = (tmp_path / "notes").read_text().split()
        assert len(notes) == len(set(notes)) == 3


def test_sigterm_lets_a_worker_finish_its_attempt(worker_stack: WorkerStack) -> None:
    """It finishes what it runs, says so and exits with 0; later work waits for another worker."""
    task = worker_stack.offer("linger")
    with worker_stack.worker() as worker:
        worker_stack.wait_until_started()
        later = worker_stack.offer("note")
        worker.signal(signal.SIGTERM)
        worker.wait_for("stopping: 1 running may finish within 25 s")
        worker_stack.finish_lingering()
        assert worker.wait() == 0
        worker.wait_for(rf"succeeded +{task} +linger +\(\d+\.\d s\)")
    record = worker_stack.record(task)
    assert (record.status, record.content, len(record.attempts)) == ("SUCCEEDED", "attempt 1", 1)
    assert worker_stack.stack.app.get(later).offer is not None


@pytest.mark.parametrize("how", ["no grace", "a second signal"])
def test_sigterm_releases_an_attempt_that_does_not_finish(worker_stack: WorkerStack, how: str) -> None:
    """This costs no attempt, and another worker starts again; later output of the old handler has no effect."""
    task = worker_stack.offer("linger")
    with worker_stack.worker("--grace", "0" if how == "no grace" else "600") as worker:
        worker_stack.wait_until_started()
        worker.signal(signal.SIGTERM)
        if how == "a second signal":
            worker.wait_for("stopping")
            worker.signal(signal.SIGINT)
        assert worker.wait() == 0, worker.output
        worker.wait_for(f"released +{task}")
    worker_stack.finish_lingering()
    with worker_stack.worker("--once", "--name", "another") as worker:
        assert worker.wait() == 0
    record = worker_stack.record(task)
    assert (record.content, [attempt.worker for attempt in record.attempts]) == ("attempt 1", ["another"])


def test_threads_left_by_a_handler_do_not_delay_the_exit(tmp_path: Path) -> None:
    """Python would wait for a busy thread pool at the end of a process."""
    with open_worker_stack(tmp_path, "api") as worker_stack, worker_stack.worker(start=HASTY) as worker:
        task = worker_stack.create("leave")
        worker.wait_for(f"succeeded +{task}")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.output
        assert "leaves behind: thread" in worker.output


def test_the_attempt_of_a_killed_worker_is_made_by_another(worker_stack: WorkerStack) -> None:
    """The attempt is TIMED_OUT when its lease has ended, and another worker makes the next one."""
    task = worker_stack.offer("linger", expected_duration=2 * MINUTE)
    with worker_stack.worker("--name", "first") as worker:
        worker_stack.wait_until_started()
        worker.kill()
    worker_stack.finish_lingering()
    worker_stack.stack.emulator.advance(4 * MINUTE)
    with worker_stack.worker("--name", "second"):
        worker_stack.wait_for_status(task, "SUCCEEDED")
    attempts = [(attempt.status, attempt.worker) for attempt in worker_stack.record(task).attempts]
    assert attempts == [("TIMED_OUT", "first"), ("SUCCEEDED", "second")]


def test_two_workers_share_the_work(worker_stack: WorkerStack) -> None:
    """Each of 60 tasks runs once on one of the two; none can end before both workers have one."""
    tasks = [worker_stack.create("meet") for _ in range(60)]
    with (
        worker_stack.worker("--concurrency", "4", "--name", "one"),
        worker_stack.worker("--concurrency", "4", "--name", "two"),
    ):
        wait_until(lambda: all(worker_stack.stack.app.get(task).has_ended for task in tasks), "all have run")
    ran = Counter((worker_stack.folder / "notes").read_text().split())
    assert ran == Counter(tasks)
    workers = Counter(attempt.worker for task in tasks for attempt in worker_stack.record(task).attempts)
    assert workers.total() == 60
    assert set(workers) == {"one", "two"}


def test_a_worker_waits_for_an_unreachable_api(tmp_path: Path) -> None:
    """At the start or while a handler runs: the worker waits, and delivers the result when the API is back."""
    port = free_port()
    with open_worker_stack(tmp_path, "api") as worker_stack, ExitStack() as stack:
        task = worker_stack.offer("linger")
        front = wsgi(worker_stack.stack.app)
        with worker_stack.worker(url=f"http://127.0.0.1:{port}", start=HASTY) as worker:
            worker.wait_for("cannot claim work")
            with WebServer(front, port=port) as server:
                server.serve()
                worker_stack.wait_until_started()
            worker_stack.finish_lingering()
            worker.wait_for("its result was not acknowledged, will retry")
            stack.enter_context(WebServer(front, port=port)).serve()
            worker_stack.wait_for_status(task, "SUCCEEDED")
            worker.wait_for(f"succeeded +{task}")
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0
            assert worker_lines(worker, "cannot claim work") == 1
        assert len(worker_stack.record(task).attempts) == 1


def worker_lines(worker: Process, words: str) -> int:
    return sum(words in line for line in worker.output.splitlines())


def test_a_worker_requires_a_valid_key_for_its_queue(tmp_path: Path) -> None:
    """A wrong key, one for another queue and none at all end the worker with one line, as unauthorised."""
    keys = {
        queue: create_key(f"key-{number}", Role.WORKER, None, [queue]) for number, queue in enumerate(["gpu", "cpu"], 1)
    }
    access = Access(api_keys=tuple(str(kept) for _, kept in keys.values()))
    wrong = f"csk_key-1_{'x' * 43}"
    with open_worker_stack(tmp_path, "api", access=access) as worker_stack:
        task = worker_stack.offer("note")
        for key, says in ((wrong, "not known"), (keys["cpu"][0], "works on cpu"), ("", "")):
            with worker_stack.worker(CLOUDSCHED_KEY=key) as worker:
                assert worker.wait() == ExitCode.UNAUTHORISED
                complaint = worker.output.splitlines()[-1]
                assert complaint.startswith("cloudsched: ")
                assert says in complaint
                assert len(worker.output.splitlines()) == 2
                assert wrong not in worker.output
        with worker_stack.worker("--once", "--key", keys["gpu"][0]) as worker:
            assert worker.wait() == 0, worker.output
        assert worker_stack.record(task).status == "SUCCEEDED"


class ClaimFakingProxy:
    """A proxy before an API that replaces the responses to claims."""

    def __init__(self, status: int, detail: str) -> None:
        self._problem = json.dumps({"type": "about:blank", "detail": detail})
        self._status = status
        self.heard = 0

    def __call__(self, _request: Request) -> Response:
        self.heard += 1
        return Response(self._problem, self._status)


def bare(folder: Path, *options: str, start: str = HASTY) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command and the environment of a worker that is configured by its options only."""
    (folder / "handlers.py").write_text(HANDLERS)
    around = {name: value for name, value in os.environ.items() if not name.startswith("CLOUDSCHED_")}
    command = (sys.executable, "-c", start, "worker", "--queue", "gpu", "--poll", "0.1", *options)
    return command, {**around, "STORY": str(folder)}


@pytest.mark.parametrize("status", [403, 503])
def test_control_characters_of_an_api_do_not_reach_the_terminal(status: int, tmp_path: Path) -> None:
    """Whether the text ends the worker or is logged, it is one line without control characters."""
    with WebServer(Request.application(ClaimFakingProxy(status, "no\x1b[2J\r\nlines\u202e"))) as server:
        server.serve()
        command, env = bare(tmp_path, "--url", f"http://{server.address}")
        with process(*command, env=env, cwd=tmp_path) as worker:
            worker.wait_for("no +.2J +lines")
            assert "\x1b" not in worker.output
            assert "\u202e" not in worker.output
            assert "\r" not in worker.output


def test_a_url_with_a_wrong_path_is_reported(tmp_path: Path) -> None:
    """A worker whose --url does not lead to the API names that address, and says what one looks like."""
    with (
        open_worker_stack(tmp_path, "api") as worker_stack,
        worker_stack.worker(url=f"{worker_stack.stack.url}/api") as worker,
    ):
        assert worker.wait() == ExitCode.NOT_FOUND
        complaint = worker.output.splitlines()[-1]
        assert f"the API at {worker_stack.stack.url}/api has no worker endpoints" in complaint
        assert "without a path" in complaint


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    """A worker started with nohup does not end with its terminal."""
    voice = ClaimFakingProxy(503, "away")
    with WebServer(Request.application(voice)) as server:
        server.serve()
        command, env = bare(tmp_path, "--url", f"http://{server.address}")
        with process("sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command, env=env, cwd=tmp_path) as worker:
            worker.wait_for("cannot claim work")
            worker.signal(signal.SIGHUP)
            heard = voice.heard
            wait_until(lambda: voice.heard > heard, "it looks again")
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0


FOR_EVER_PATIENT = """
from cloudsched.cli import main as cli
from cloudsched.worker import command as worker_command
from cloudsched.worker import worker as background
worker_command.API_TIMEOUT_SECONDS = background.SHUTDOWN_WAIT_SECONDS = 3600
cli.main()
"""


def test_a_second_signal_ends_a_worker_during_a_slow_response(tmp_path: Path) -> None:
    """After the first signal it waits for the response to its claim, which never ends; the second one ends the wait."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_SECONDS)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        command, env = bare(tmp_path, "--url", url, start=FOR_EVER_PATIENT)
        with process(*command, env=env, cwd=tmp_path) as worker:
            with accept_request(server) as connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{")
                dropping = send_slowly(connection)
                worker.signal(signal.SIGTERM)
                wait_until(lambda: next(dropping) > 20, "it waits for the answer")
                worker.signal(signal.SIGINT)
                assert worker.wait() == 0
            assert "stopped before the claim was answered" in worker.output
            assert "Traceback" not in worker.output


def accept_request(server: socket.socket) -> socket.socket:
    """Return the first connection that sends anything: before it, the worker only looks whether the port is open."""
    while True:
        connection, _ = server.accept()
        connection.settimeout(WAIT_SECONDS)
        if connection.recv(65536):
            return connection
        connection.close()


def send_slowly(connection: socket.socket) -> Iterator[int]:
    """Send one byte at a time as long as the client reads; yield how many were sent."""
    for count in itertools.count(1):
        with suppress(OSError):
            connection.sendall(b" ")
        yield count
