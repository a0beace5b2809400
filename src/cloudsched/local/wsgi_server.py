"""A WSGI server in threads of this process: what the local stack answers with."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Self

from cheroot.errors import MaxSizeExceeded
from cheroot.server import ChunkedRFile
from cheroot.wsgi import Gateway_10, Server

from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from wsgiref.types import WSGIApplication

THREADS = 32
"""How many requests are answered at the same time: deliveries, whose handlers may call the API, and clients."""
GRACE_SECONDS = 2
"""How long a request that is being answered may go on when the server is stopped."""

MAX_CHUNKED_BODY_BYTES = 16 * 1024 * 1024
"""How many bytes of a body in chunks are read at the most, with what is between them; the API takes far less."""
_CHUNK_SIZE = 64 * 1024


class _ChunkedBody(ChunkedRFile):
    """A body in chunks, which is read to its end, or until it is found not to be one."""

    is_broken = False

    def read(self, size: int | None = None) -> bytes:
        """Read up to so many bytes. Raises OSError or ValueError if there is something else than chunks."""
        try:
            data: bytes = super().read(size)
        except MaxSizeExceeded as error:
            self.is_broken = True
            raise OSError(*error.args) from error
        except (OSError, ValueError):
            self.is_broken = True
            raise
        return data


class _Gateway(Gateway_10):
    """Reads what the application leaves of a body in chunks: on its connection the next request comes after it."""

    def respond(self) -> None:
        """Answer a request."""
        if not self.req.chunked_read:
            super().respond()  # of a body that says how long it is, cheroot reads the rest
            return
        body = self.env["wsgi.input"] = _ChunkedBody(self.req.conn.rfile, MAX_CHUNKED_BODY_BYTES)
        super().respond()
        if body.is_broken or not _drain(body):
            self.req.close_connection = True


def _drain(body: _ChunkedBody) -> bool:
    """Read a body to its end, and return whether that was found."""
    trailers: Callable[[], Iterable[bytes]] = body.read_trailer_lines  # type: ignore[assignment]  # its stub errs
    try:
        while body.read(_CHUNK_SIZE):
            pass
        for _ in trailers():
            pass
    except (OSError, ValueError):
        return False
    return True


class WebServer:
    """Serves one application, in a ``with``: from its beginning on it listens, from `serve` on it answers.

    Args:
        application: What answers.
        host: The address to listen on.
        port: The port to listen on; 0 for a free one.
    """

    def __init__(self, application: WSGIApplication, host: str = "127.0.0.1", port: int = 0) -> None:
        self._host = host
        self._port = port
        self._server = Server(
            (host, port), application, numthreads=THREADS, request_queue_size=256, shutdown_timeout=GRACE_SECONDS
        )
        self._server.gateway = _Gateway
        self._server.expiration_interval = 0.1  # how long, in seconds, it may take to see that it is to stop
        self._ready: Future[None] = Future()
        self._serving = threading.Event()
        # The workers are made by this thread, and daemons like it: a handler that hangs does not keep the process.
        self._thread = threading.Thread(target=self._serve, name="web-server", daemon=True)

    @property
    def address(self) -> str:
        """`host:port`, once it listens."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    def __enter__(self) -> Self:
        """Listen.

        Raises:
            Misconfigured: The address cannot be had.
        """
        self._thread.start()
        try:
            self._ready.result()
        except OSError as error:
            raise Misconfigured(f"Cannot listen on {self.address}: {error}. Choose another port, or 0.") from error
        self._port = self._server.bind_addr[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def serve(self) -> None:
        """Begin to answer; who has connected already has waited."""
        self._serving.set()

    def stop(self) -> None:
        """Answer nobody any more; does nothing the second time."""
        self._serving.set()
        stopping = threading.Thread(target=self._server.stop, name="web-server-stop", daemon=True)
        stopping.start()
        stopping.join(GRACE_SECONDS + 1)

    def _serve(self) -> None:
        try:
            self._server.prepare()
        except BaseException as error:  # noqa: BLE001 - raised where the server is started
            self._ready.set_exception(error)
            return
        self._ready.set_result(None)
        self._serving.wait()
        self._server.serve()
