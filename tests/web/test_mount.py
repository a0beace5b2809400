"""The whole HTTP surface inside services that exist: each framework serves, delivers and sweeps below its mount."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.harness import SECRET, START, Reply, request, wait_until
from tests.web.callers import MINUTE
from tests.web.mounts import ASGI_FRAMEWORKS, WSGI_FRAMEWORKS, Service, make_service

from cloudsched import App, Settings, wsgi
from cloudsched.config.access import Access
from cloudsched.emulator import CloudTasksEmulator, MovableClock
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role

pytestmark = pytest.mark.usefixtures("own_process")  # frameworks configure it
KEY, HASHED_KEY = create_key("ops", Role.ADMIN)
"""An admin's key, and how it is configured."""


@contextmanager
def serve_asgi(service: Service) -> Iterator[str]:
    """Serve an ASGI application with uvicorn, as on Cloud Run; yield its address."""
    server = uvicorn.Server(uvicorn.Config(service, port=0, log_config=None, lifespan="auto"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive(), "uvicorn serves")
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def serve_wsgi(service: Service) -> Iterator[str]:
    """Serve a WSGI application; yield its address."""
    with WebServer(service) as server:
        server.serve()
        yield f"http://{server.address}"


@pytest.fixture
def queue() -> Iterator[CloudTasksEmulator]:
    """A local Cloud Tasks, whose clock stands still."""
    name = f"projects/{Settings().project}/locations/{Settings().location}/queues/{Settings().queue}"
    with CloudTasksEmulator(clock=MovableClock(START, frozen=True), queues=[name]) as emulator:
        yield emulator


app = App()
"""An app that is opened by its settings, once the service's address is known."""


@app.handler("greet", access="users")
def greet(payload: dict[str, str]) -> str:
    return f"hello {payload['name']}"


@contextmanager
def open_app(app: App, queue: CloudTasksEmulator, url: str, folder: Path, access: Access) -> Iterator[None]:
    """Give the app settings as the service's environment would."""
    settings = Settings(
        secret=SECRET,
        store="sqlite",
        data=folder / "tasks.db",
        tasks_emulator=queue.address,
        executor_url=url,
        access=access,
    )
    with app.override(settings):
        try:
            yield
        finally:
            app.close()


def use_it(url: str, queue: CloudTasksEmulator) -> None:
    """Create a task below the mount, let the queue deliver it there, sweep, and read the description."""
    task = {"id": "a", "owner": "ada", "title": "Greet", "handler": "greet", "payload": {"name": "Ada"}}
    due = {"at": (START + 5 * MINUTE).isoformat()}  # what is due now is delivered before the clock moves
    created = request(url, "POST", "/scheduler/v1/tasks", {**task, "schedule": due})
    headers = {name.lower(): value for name, value in created.headers.items()}
    assert (created.status, headers.get("location")) == (201, "/scheduler/v1/tasks/a")
    assert queue.advance(6 * MINUTE) == 1
    (record,) = request(url, "GET", "/scheduler/v1/tasks/a/executions").body["executions"]
    assert (record["status"], record["content"]) == ("SUCCEEDED", "hello Ada")
    assert request(url, "POST", "/scheduler/v1/sweep", {}).body["examined"] == 0
    description = request(url, "GET", "/scheduler/openapi.json").body
    assert description["servers"][0]["url"] == "/scheduler"
    assert request(url, "GET", "/scheduler/v1/tasks/none").body["title"] == "Not found"
    forged = request(url, "POST", "/scheduler/v1/tasks/execute", {}, {"X-Cloudsched-Token": "forged"})
    assert forged.status == 401
    assert request(url, "GET", "/own").body == {"own": "page"}, "the service's own pages are served as before"


@pytest.mark.parametrize("name", [*ASGI_FRAMEWORKS, *WSGI_FRAMEWORKS])
def test_it_works_below_a_path_of_a_frameworks_application(
    name: str, app: App, queue: CloudTasksEmulator, tmp_path: Path
) -> None:
    """Create, deliver and sweep there; the application serves its own pages beside it."""
    serve: Any = serve_asgi if name in ASGI_FRAMEWORKS else serve_wsgi
    with (
        serve(make_service(name, app, tmp_path)) as url,
        open_app(app, queue, f"{url}/scheduler", tmp_path, Access(open=True)),
    ):
        use_it(url, queue)


def test_async_handlers_run_beside_the_service(queue: CloudTasksEmulator, tmp_path: Path) -> None:
    """They run on the process's own loop for handlers, not on that of the web server, which stays free."""
    app, loops = App(), set[asyncio.AbstractEventLoop]()

    @app.handler("greet")
    async def greet(payload: dict[str, str]) -> str:
        await asyncio.sleep(0)
        loops.add(asyncio.get_running_loop())
        return f"hello {payload['name']}"

    service = make_service("Starlette", app, tmp_path)

    async def see_own_loop(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI's
        servers.add(asyncio.get_running_loop())
        await service(scope, receive, send)

    servers = set[asyncio.AbstractEventLoop]()
    with (
        serve_asgi(see_own_loop) as url,
        open_app(app, queue, f"{url}/scheduler", tmp_path, Access(open=True)),
    ):
        use_it(url, queue)
    assert (len(loops), len(servers)) == (1, 1)
    assert loops.isdisjoint(servers)


def test_callers_authenticate_as_at_the_functions(app: App, queue: CloudTasksEmulator, tmp_path: Path) -> None:
    """With keys configured, every request needs one, also from this machine; a key is enough."""
    access = Access(api_keys=(str(HASHED_KEY),))
    with (
        serve_asgi(make_service("Starlette", app, tmp_path)) as url,
        open_app(app, queue, f"{url}/scheduler", tmp_path, access),
    ):
        assert request(url, "GET", "/scheduler/v1/tasks").status == 401
        assert request(url, "GET", "/scheduler/v1/tasks", None, {"X-Api-Key": KEY}).status == 200
        assert request(url, "POST", "/scheduler/v1/sweep", {}, {"X-Api-Key": KEY}).status == 401


@pytest.mark.parametrize("is_deployed", [False, True])
def test_a_mounted_sweep_is_never_public(is_deployed: bool, app: App, tmp_path: Path) -> None:  # noqa: FBT001
    """In the cloud too: a service that serves the public API is not private, so Cloud Run protects nothing."""
    access = Access(api_keys=(str(HASHED_KEY),))
    settings = Settings(secret=SECRET, store="sqlite", data=tmp_path / "t.db", access=access, is_deployed=is_deployed)
    with app.override(settings), serve_wsgi(wsgi(app)) as url:
        reply: Reply = request(url, "POST", "/v1/sweep", {})
        assert reply.status == 401
        assert "CLOUDSCHED_SWEEPER" in reply.body["detail"]
        app.close()


def test_a_slow_handler_holds_up_no_other_request(app: App, queue: CloudTasksEmulator, tmp_path: Path) -> None:
    """Handlers run in threads: while one waits, the event loop and other requests continue."""
    begun, may_end = threading.Event(), threading.Event()

    @app.handler("wait")
    def wait() -> None:
        begun.set()
        assert may_end.wait(60)

    with (
        serve_asgi(make_service("Starlette", app, tmp_path)) as url,
        open_app(app, queue, f"{url}/scheduler", tmp_path, Access(open=True)),
    ):
        request(url, "POST", "/scheduler/v1/tasks", {"id": "a", "owner": "ada", "title": "Wait", "handler": "wait"})
        mover = threading.Thread(target=lambda: queue.advance(6 * MINUTE))
        mover.start()
        assert begun.wait(60)
        assert request(url, "GET", "/own").status == 200
        assert request(url, "GET", "/scheduler/v1/tasks/a").body["status"] == "ACTIVE"
        may_end.set()
        mover.join()
