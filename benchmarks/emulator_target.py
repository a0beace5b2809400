"""A trivial HTTP target in a process of its own: it answers 200 at once and records when each task arrived.

`GET /arrivals` returns and clears the record: a list of [the name in the path, seconds since the epoch].
`GET /count` returns its length.
"""

from __future__ import annotations

import asyncio
import json
import time


class Target(asyncio.Protocol):
    """Implements just enough of HTTP/1.1 for requests with a Content-Length or without a body."""

    arrivals: list[tuple[str, float]] = []  # noqa: RUF012 - shared by all connections, on purpose

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Prepare for the requests of a new connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].decode("latin-1")
            length = 0
            for line in head.split("\r\n")[1:]:
                name, _, value = line.partition(":")
                if name.lower() == "content-length":
                    length = int(value)
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            path = head.split(" ", 2)[1]
            body = b""
            if path == "/arrivals":
                body = json.dumps(Target.arrivals).encode()
                Target.arrivals.clear()
            elif path == "/count":
                body = str(len(Target.arrivals)).encode()
            else:
                Target.arrivals.append((path[1:], time.time()))
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


async def main() -> None:
    """Print the port and serve until killed."""
    server = await asyncio.get_running_loop().create_server(Target, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
