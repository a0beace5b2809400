"""One call, in both colours: whose connections, how long, how often, under which key, and what its error says."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cases import try_each
from tests.client.harness import GREET, IN_BOTH_COLOURS, Flaky, catch_error
from tests.people.senders.mail_server import make_tls
from tests.web.callers import MINUTE
from werkzeug.wrappers import Response

from cloudsched.client import AsyncClient, Client
from cloudsched.errors import CloudschedError, InvalidArgument, InvalidInput, Misconfigured, Unavailable
from cloudsched.testing import Simulation

CALLERS = 120
KEYS = ["größe 50 %", "日本語の鍵　二", "🎉👨‍👩‍👧", "a%20b", "%", "x:y/z", "é" * 255, " a ", "鍵" * 255]


def call(method: Callable[[Any], Any], url: str, *, is_async: bool, **options: Any) -> Any:  # noqa: ANN401 - its result
    """Call a method of a new client, of either colour."""
    if not is_async:
        with Client(url, **options) as client:
            return method(client)

    async def call_async() -> Any:  # noqa: ANN401 - the same
        async with AsyncClient(url, **options) as client:
            return await method(client)

    return asyncio.run(call_async())


# Keys


def test_a_key_in_any_script_names_one_creation(client: Client, sim: Simulation) -> None:
    """Also if it comes a second time, and no two keys are the same."""
    made = {key: client.create(**GREET, idempotency_key=key).id for key in KEYS}
    assert {key: client.create(**GREET, idempotency_key=key).id for key in KEYS} == made
    assert len(set(made.values())) == len(KEYS)
    assert len([*client.tasks()]) == len(KEYS)
    sim.advance(MINUTE)
    task = client.create(**GREET, schedule="every day at 9")
    started = [client.trigger(task.id, idempotency_key=key).triggered for key in KEYS * 2]
    assert started[: len(KEYS)] == started[len(KEYS) :]


@pytest.mark.parametrize("key", ["größe 50 %", "日本", "🎉"])
def test_curl_sends_the_same_key_as_a_client(client: Client, url: str, key: str) -> None:
    """As its bytes, or percent-encoded."""
    mine = client.create(**GREET, idempotency_key=key).id
    encoded = key.replace("%", "%25").encode()
    for sent in (encoded, "".join(f"%{each:02X}" for each in key.encode()).encode()):
        answer = httpx.post(f"{url}/v1/tasks", json=GREET, headers=[(b"Idempotency-Key", sent)])
        assert answer.json()["id"] == mine


@try_each("key", ["a\nb", "a\0", "\x7f", "\x85", "\ud800", "x\udfff"])
def test_a_key_that_is_no_text_is_refused_by_its_name(client: Client, flaky: Flaky, key: str) -> None:
    flaky.asked.clear()
    error = catch_error(lambda: client.create(**GREET, idempotency_key=key))
    assert isinstance(error, InvalidInput)
    assert error.field == "idempotency_key"
    assert flaky.asked == []


@try_each(
    "act",
    [
        lambda client: client.get("\ud800"),
        lambda client: client.acting_for("\ud800"),
        lambda client: client.inbox("\ud800"),
        lambda client: client.update("t", etag="\n", title="x"),
        lambda client: client.update("t", etag="日本", title="x"),
        lambda client: list(client.tasks(owner="\ud800")),
    ],
)
def test_text_that_cannot_be_sent_is_the_callers_mistake(client: Client, act: Callable[[Client], object]) -> None:
    """It would be wrong for ever, so no error of the network is made of it."""
    assert isinstance(catch_error(lambda: act(client)), InvalidInput)


# Errors


@pytest.fixture
def closed_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.mark.usefixtures("waits")
@IN_BOTH_COLOURS
def test_an_error_of_a_creation_names_the_key_to_repeat_it(closed_port: int, *, is_async: bool) -> None:
    """The caller's own, or the one that was made; a task with an id needs none."""
    url = f"http://127.0.0.1:{closed_port}"

    def fail(method: Callable[[Any], Any]) -> Unavailable:
        error = catch_error(lambda: call(method, url, is_async=is_async))
        assert isinstance(error, Unavailable)
        assert error.is_retryable
        return error

    assert fail(lambda client: client.create(**GREET, idempotency_key="größe")).idempotency_key == "größe"
    made = fail(lambda client: client.create(**GREET))
    assert made.idempotency_key
    assert made.idempotency_key in str(made)
    named = fail(lambda client: client.create(**GREET, id="t"))
    assert named.idempotency_key is None
    assert "safe to repeat" in str(named)
    for method in (lambda client: client.get("t"), lambda client: client.create_feed("ada")):
        assert "epeat" not in str(fail(method))


def test_the_key_of_many_is_the_one_that_was_given(client: Client, flaky: Flaky, waits: list[float]) -> None:
    """Not that of the request among them that failed."""
    tasks = [{**GREET, "title": f"T{number}"} for number in range(51)]
    failed: list[Callable[[], Response]] = [lambda: Response(status=500)]
    client.create_many(tasks[:50], idempotency_key="k")
    flaky.fails = failed
    flaky.loses = True
    error = catch_error(lambda: client.create_many(tasks[:50] + tasks, idempotency_key="other"))
    assert isinstance(error, Unavailable)
    assert error.idempotency_key == "other"
    assert waits == []


@pytest.fixture
def untrusted(tmp_path: Path) -> Iterator[str]:
    """The address of a server whose certificate nobody knows."""
    context, _ = make_tls(tmp_path)

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(65_536)

    with serve_connections(serve) as where:
        yield f"https://{where}"


@pytest.fixture
def without_tls() -> Iterator[str]:
    """The address of a server that answers in plain HTTP whatever comes."""

    def serve(connection: socket.socket) -> None:
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with serve_connections(serve) as where:
        yield f"https://{where}"


@IN_BOTH_COLOURS
def test_what_lasts_is_not_repeated_and_says_what_to_mend(
    url: str,
    flaky: Flaky,
    untrusted: str,
    without_tls: str,
    monkeypatch: pytest.MonkeyPatch,
    waits: list[float],
    *,
    is_async: bool,
) -> None:
    """A name that no host has, a certificate, HTTPS where HTTP is spoken, a service that is not set up, a fault."""

    def find_nobody(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    def fail(address: str) -> str:
        error = catch_error(lambda: call(lambda client: client.create(**GREET), address, is_async=is_async))
        assert isinstance(error, Unavailable)
        assert (error.is_retryable, waits) == (False, [])
        assert "again" not in str(error)
        assert "epeat" not in str(error)
        return str(error)

    assert "certificate" in fail(untrusted)
    assert "HTTPS" in fail(without_tls)
    problem = '{"type": "https://cloudsched.dev/problems/%s", "status": %s, "title": "", "detail": "its log says why"}'
    for name, status in (("misconfigured", 503), ("internal-error", 500)):
        flaky.fails = [partial(Response, problem % (name, status), status)]
        assert "its log says why" in fail(url)
    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", find_nobody)
        assert "'api.example'" in fail("http://api.example")


# Time and repetitions


@IN_BOTH_COLOURS
def test_repetitions_are_spread_and_end_with_the_timeout(
    url: str, flaky: Flaky, waits: list[float], *, is_async: bool
) -> None:
    """Clients that failed together do not come back together, and one that may wait no longer does not.

    The number of repetitions is the caller's.
    """
    for _ in range(8):
        flaky.fail(502, 502)
        call(lambda client: client.create(**GREET), url, is_async=is_async)
    assert len(set(waits)) == len(waits)
    assert max(waits) < 10
    waits.clear()
    flaky.fails = [lambda: Response(status=503, headers={"Retry-After": "2"})]
    error = catch_error(lambda: call(lambda client: client.create(**GREET), url, is_async=is_async, timeout=1))
    assert isinstance(error, Unavailable)
    flaky.asked.clear()
    flaky.fail(502)
    with pytest.raises(Unavailable):
        call(lambda client: client.get("t"), url, is_async=is_async, max_retries=0)
    assert (len(flaky.asked), waits) == (1, [])


@try_each(
    "options",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"timeout": None},
        {"timeout": "30"},
        {"max_retries": -1},
        {"max_retries": 1.5},
        {"max_retries": True},
        {"transport": object()},
        {"http_client": object()},
    ],
)
def test_options_that_mean_nothing_are_refused_at_once(options: dict[str, Any]) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(InvalidArgument) as caught:
            kind("http://127.0.0.1:1", **options)
        assert caught.value.field in options
    with pytest.raises(InvalidArgument):
        Client("http://127.0.0.1:1", http_client=httpx.AsyncClient())  # type: ignore[arg-type]
    with httpx.Client() as given, pytest.raises(Misconfigured):
        Client("http://127.0.0.1:1", http_client=given, transport=httpx.MockTransport(answer))


# Connections


def answer(request: httpx.Request) -> httpx.Response:
    """Answer with a task whose title is who asks."""
    return httpx.Response(200, json={"occurrences": [], "agent": request.headers["User-Agent"]})


@IN_BOTH_COLOURS
def test_it_says_who_it_is_and_uses_what_it_is_given(*, is_async: bool) -> None:
    """A transport is closed with the client, and an HTTP client of the caller's is not; its headers stay its own."""
    agents: list[str] = []

    def note(request: httpx.Request) -> httpx.Response:
        agents.append(request.headers["User-Agent"])
        return answer(request)

    def ask(client: Any) -> Any:  # noqa: ANN401 - of either colour
        return client.upcoming("t")

    call(ask, "http://api.example", is_async=is_async, transport=httpx.MockTransport(note))
    given: Any = (httpx.AsyncClient if is_async else httpx.Client)(
        transport=httpx.MockTransport(note), headers={"User-Agent": "mine/1"}, follow_redirects=True
    )
    call(ask, "http://api.example", is_async=is_async, http_client=given)
    assert not given.is_closed
    call(ask, "http://api.example", is_async=is_async, http_client=given)
    assert agents[0].startswith("cloudsched-python/")
    assert agents[1:] == ["mine/1", "mine/1"]

    redirects = httpx.MockTransport(lambda _: httpx.Response(307, headers={"Location": "http://other.example"}))
    given = (httpx.AsyncClient if is_async else httpx.Client)(transport=redirects, follow_redirects=True)
    with pytest.raises(Unavailable):
        call(ask, "http://api.example", is_async=is_async, http_client=given)


@IN_BOTH_COLOURS
def test_a_given_transport_keeps_the_timeout(*, is_async: bool) -> None:
    class Drips(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                threading.Event().wait(0.02)
                yield b" "

        async def __aiter__(self) -> Any:  # noqa: ANN401 - bytes
            while True:
                await asyncio.sleep(0.02)
                yield b" "

    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Drips()))
    with pytest.raises(Unavailable, match=r"within 0\.1 s"):
        call(lambda it: it.get("t"), "http://api.example", is_async=is_async, timeout=0.1, transport=transport)


ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n{"occurrences": []}'


@contextmanager
def serve_connections(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """Give the address of a server that serves each connection on a thread of its own."""
    threads: list[threading.Thread] = []

    def start(target: Callable[..., None], *arguments: object) -> None:
        threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        threads[-1].start()

    def accept() -> None:
        with suppress(OSError):
            while True:
                start(serve, server.accept()[0])

    with socket.create_server(("127.0.0.1", 0), backlog=2 * CALLERS) as server:
        start(accept)
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(60)


def test_threads_do_not_wait_for_each_other() -> None:
    """More of them than httpx has connections are answered, although none is before all have asked."""
    met = threading.Barrier(CALLERS)
    found: list[object] = []

    def serve(connection: socket.socket) -> None:
        with connection:
            connection.recv(65_536)
            met.wait(30)
            connection.sendall(ANSWER)

    with serve_connections(serve) as where, Client(f"http://{where}") as client:
        threads = [threading.Thread(target=lambda: found.append(client.upcoming("t"))) for _ in range(CALLERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [[]] * CALLERS


@IN_BOTH_COLOURS
def test_a_connection_is_used_again(*, is_async: bool) -> None:
    """By the next call, whose server would else see a new one for each request, until the client is closed."""
    accepted: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        accepted.append(connection)
        with connection:
            while connection.recv(65_536):
                connection.sendall(ANSWER)

    async def ask(url: str) -> None:
        async with AsyncClient(url) as client:
            await client.upcoming("t")
            await asyncio.gather(*(client.upcoming("t") for _ in range(3)))
            await client.upcoming("t")
        with pytest.raises(RuntimeError, match="closed"):
            await client.upcoming("t")

    with serve_connections(serve) as where:
        if is_async:
            asyncio.run(ask(f"http://{where}"))
        else:
            with Client(f"http://{where}") as client, ThreadPoolExecutor(3) as pool:
                client.upcoming("t")
                assert [*pool.map(client.upcoming, ["t"] * 3)] == [[]] * 3
                client.upcoming("t")
            with pytest.raises(RuntimeError, match="closed"):
                client.upcoming("t")
    assert 1 <= len(accepted) <= 3
    for connection in accepted:
        assert connection.fileno() == -1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_does_not_use_what_its_parent_was_given() -> None:
    """Both would read answers from the same connections."""
    client = Client("http://api.example", transport=httpx.MockTransport(answer))
    assert client.upcoming("t") == []
    child = os.fork()
    if not child:
        try:
            client.upcoming("t")
        except Misconfigured:
            os._exit(7)
        except CloudschedError:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
