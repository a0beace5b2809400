"""One port serves gRPC and HTTP/1.1, and no input breaks the server."""

from __future__ import annotations

import asyncio
import gzip
import os
import random
import socket
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest
from h2.connection import H2Connection
from h2.events import DataReceived, PingAckReceived, ResponseReceived, StreamEnded, TrailersReceived
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import try_each
from tests.emulator.conftest import QUEUE, Client, Http
from tests.harness import WAIT_SECONDS

from cloudsched.emulator import CloudTasksEmulator
from cloudsched.emulator.api.protos import MESSAGES
from cloudsched.emulator.http.grpc import PREFACE, GrpcConnection

GET_QUEUE = "/google.cloud.tasks.v2.CloudTasks/GetQueue"
HEAD = [(":method", "POST"), (":path", GET_QUEUE), (":scheme", "http"), (":authority", "x")]


def encode_frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Encode an HTTP/2 frame, which need not make sense."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


@settings(max_examples=50)
@given(st.integers(0, 65_000).map(os.urandom), st.data())
def test_a_call_may_arrive_in_any_pieces(message: bytes, data: st.DataObject) -> None:
    """Bytes are not messages: however a call is cut on its way, it is served whole, and answered with its reply."""
    client = H2Connection()
    client.initiate_connection()
    client.send_headers(1, [*HEAD, ("content-type", "application/grpc")])
    content = b"\0" + len(message).to_bytes(4, "big") + message
    for start in range(0, len(content), 16_384):
        client.send_data(1, content[start : start + 16_384], end_stream=start + 16_384 >= len(content))
    stream = client.data_to_send()
    wire, connection = Wire(), GrpcConnection(lambda path, got: path.encode() + got)
    connection.connection_made(wire)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)) | st.integers(0, 120), max_size=12)))
    for start, end in pairwise([0, *cuts, len(stream)]):
        connection.data_received(stream[start:end])
    received = b"".join(each.data for each in client.receive_data(wire.sent) if isinstance(each, DataReceived))
    assert received[5:] == GET_QUEUE.encode() + message


class Reference:
    """A hand-written gRPC client over the reference HTTP/2 implementation."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=WAIT_SECONDS)
        self.http = H2Connection()
        self.http.initiate_connection()
        self.flush()

    def flush(self) -> None:
        self.socket.sendall(self.http.data_to_send())

    def begin(self, path: str, content_type: str = "application/grpc", *extra: tuple[str, str]) -> int:
        stream = int(self.http.get_next_available_stream_id())
        head = [(":method", "POST"), (":path", path), (":scheme", "http"), (":authority", "x")]
        self.http.send_headers(stream, [*head, ("content-type", content_type), ("te", "trailers"), *extra])
        return stream

    def call(self, path: str, message: bytes, flag: bytes = b"\0", compression: str = "") -> int:
        extra = [("grpc-encoding", compression)] if compression else []
        stream = self.begin(path, "application/grpc", *extra)
        data = flag + len(message).to_bytes(4, "big") + message
        for start in range(0, len(data), 16384):
            self.http.send_data(stream, data[start : start + 16384], end_stream=start + 16384 >= len(data))
        self.flush()
        return stream

    def finish(self, streams: set[int], *, open_windows: bool = True) -> dict[int, tuple[bytes, dict[str, str]]]:
        """Read until these streams have ended; return the data, headers and trailers of each."""
        found: dict[int, tuple[bytes, dict[str, str]]] = {stream: (b"", {}) for stream in streams}
        waiting = set(streams)
        while waiting:
            data = self.socket.recv(65536)
            assert data, "the connection was closed"
            for event in self.http.receive_data(data):
                if isinstance(event, ResponseReceived | TrailersReceived):
                    found[event.stream_id][1].update((str(k), str(v)) for k, v in self._text(event.headers))
                elif isinstance(event, DataReceived):
                    body, seen = found[event.stream_id]
                    found[event.stream_id] = (body + event.data, seen)
                    if open_windows:
                        self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, StreamEnded):
                    waiting.discard(event.stream_id)
            self.flush()
        return found

    def count_bytes_without_window(self, at_least: int) -> int:
        """Read until so much data has come, opening no window; return how much has come by the reply to a ping."""
        received, has_pinged = 0, False
        while True:
            if received >= at_least and not has_pinged:
                self.http.ping(b"an echo?")
                self.flush()
                has_pinged = True
            data = self.socket.recv(65536)
            assert data, "the connection was closed"
            for event in self.http.receive_data(data):
                if isinstance(event, DataReceived):
                    received += event.flow_controlled_length
                elif isinstance(event, PingAckReceived):
                    return received
            self.flush()

    @staticmethod
    def _text(pairs: Sequence[tuple[object, object]]) -> list[tuple[str, str]]:
        return [tuple(part.decode() if isinstance(part, bytes) else str(part) for part in pair) for pair in pairs]  # type: ignore[misc]


@pytest.fixture
def dial() -> Iterator[Callable[[str], Reference]]:
    """A function that opens connections, which are closed with the test."""
    made: list[Reference] = []

    def connect(address: str) -> Reference:
        made.append(Reference(address))
        return made[-1]

    yield connect
    for reference in made:
        reference.socket.close()


@pytest.fixture
def reference(emulator: CloudTasksEmulator, dial: Callable[[str], Reference]) -> Reference:
    return dial(emulator.address)


def get_queue(name: str = QUEUE) -> bytes:
    message: bytes = MESSAGES["GetQueueRequest"](name=name).SerializeToString()
    return message


def test_the_reference_implementation_is_served(reference: Reference) -> None:
    good = reference.call(GET_QUEUE, get_queue())
    missing = reference.call(GET_QUEUE, get_queue(f"{QUEUE}x"))
    unknown = reference.call("/google.cloud.tasks.v2.CloudTasks/Nothing", b"")
    broken = reference.call(GET_QUEUE, b"\xff\xff\xff")
    packed = reference.call(GET_QUEUE, gzip.compress(get_queue()), b"\1", "gzip")
    odd = reference.call(GET_QUEUE, b"?", b"\1", "brotli")
    bomb = reference.call(GET_QUEUE, gzip.compress(bytes(33 * 1024 * 1024)), b"\1", "gzip")
    replies = reference.finish({good, missing, unknown, broken, packed, odd, bomb})
    assert MESSAGES["Queue"].FromString(replies[good][0][5:]).name == QUEUE
    assert replies[packed][0] == replies[good][0]
    statuses = [replies[stream][1]["grpc-status"] for stream in sorted(replies)]
    assert statuses == ["0", "5", "12", "3", "0", "12", "8"]
    assert replies[missing][1]["grpc-message"].startswith("Queue does not exist. If you")


def test_a_request_that_is_not_grpc_gets_415(reference: Reference) -> None:
    stream = reference.begin("/", "text/html")
    reference.flush()
    assert reference.finish({stream})[stream][1] == {":status": "415"}


def test_a_reply_waits_for_the_clients_window(
    emulator: CloudTasksEmulator, grpc_client: Client, dial: Callable[[str], Reference]
) -> None:
    """A page of 300 KB passes through a window of 64 KB: nothing exceeds the window, and all of it arrives."""
    later = {"seconds": 1_798_761_600 + 3600}
    for _ in range(3):
        body = os.urandom(100_000)
        request = {"url": "http://127.0.0.1:9/", "body": body}
        grpc_client.create_task(parent=QUEUE, task={"http_request": request, "schedule_time": later})
    reference = dial(emulator.address)
    message = MESSAGES["ListTasksRequest"](parent=QUEUE, response_view=2).SerializeToString()
    stream = reference.call("/google.cloud.tasks.v2.CloudTasks/ListTasks", message)
    body = reference.finish({stream})[stream][0]
    assert len(MESSAGES["ListTasksResponse"].FromString(body[5:]).tasks) == 3
    reference = dial(emulator.address)
    reference.call("/google.cloud.tasks.v2.CloudTasks/ListTasks", message)
    assert reference.count_bytes_without_window(65_535) == 65_535


def test_a_message_beyond_32_megabytes_is_refused(reference: Reference) -> None:
    stream = reference.begin(GET_QUEUE)
    sent, total = 0, 33 * 1024 * 1024
    reference.flush()
    reference.socket.recv(65536)
    chunk = bytes(16384)
    while sent < total:  # past the reference's own accounting: the server opens its windows wide
        reference.socket.sendall(encode_frame(0, 0, stream, chunk))
        sent += len(chunk)
    assert reference.finish({stream})[stream][1]["grpc-status"] == "8"


@try_each(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /v2 HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        PREFACE + b"\x00\x40\x01" + b"\xff" * (6 + 16_385),
        PREFACE + encode_frame(0, 0, 1, b"no call"),
        PREFACE + encode_frame(1, 4, 2, b""),
        PREFACE + encode_frame(1, 4, 1, b"\xff\xff\xff\xff\xff\xff"),
        PREFACE + encode_frame(8, 0, 0, b"\0\0\0\0"),
        PREFACE + encode_frame(5, 0, 1, b""),
        PREFACE + encode_frame(1, 0, 1, b"\x82") + encode_frame(6, 0, 0, b"12345678"),
    ],
)
def test_garbage_ends_only_its_own_connection(emulator: CloudTasksEmulator, http: Http, garbage: bytes) -> None:
    host, port = emulator.address.split(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_SECONDS) as connection:
        connection.sendall(garbage)
        while connection.recv(65536):
            pass
    assert http("GET", "/healthz")[0] == 200


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_mutated_calls_never_break_the_server(shared_emulator: CloudTasksEmulator, seed: int) -> None:
    """A real call is sent in pieces with some bytes changed; the server still responds afterwards."""
    draw = random.Random(seed)  # noqa: S311 - a test's own dice
    writer = H2Connection()
    writer.initiate_connection()
    writer.send_headers(1, [*HEAD, ("content-type", "application/grpc")])
    writer.send_data(1, b"\0" + len(get_queue()).to_bytes(4, "big") + get_queue(), end_stream=True)
    data = bytearray(writer.data_to_send())
    for _ in range(draw.randint(1, 6)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    host, port = shared_emulator.address.split(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_SECONDS) as connection:
        cut = draw.randrange(len(data))
        connection.sendall(data[:cut])
        connection.sendall(data[cut:])
    reference = Reference(shared_emulator.address)
    stream = reference.call(GET_QUEUE, get_queue())
    assert reference.finish({stream})[stream][1]["grpc-status"] == "0"
    reference.socket.close()


def test_a_larger_initial_window_applies_to_open_streams(
    emulator: CloudTasksEmulator, grpc_client: Client, dial: Callable[[str], Reference]
) -> None:
    """SETTINGS_INITIAL_WINDOW_SIZE changes the windows of open streams (RFC 9113, section 6.9.2)."""
    request = {"url": "http://127.0.0.1:9/", "body": os.urandom(200_000)}
    later = {"seconds": 1_798_761_600 + 3600}
    grpc_client.create_task(parent=QUEUE, task={"http_request": request, "schedule_time": later})
    reference = dial(emulator.address)
    reference.http.increment_flow_control_window(10_000_000)
    message = MESSAGES["ListTasksRequest"](parent=QUEUE, response_view=2).SerializeToString()
    stream = reference.call("/google.cloud.tasks.v2.CloudTasks/ListTasks", message)
    reference.http.update_settings({4: 500_000})
    reference.flush()
    body = reference.finish({stream}, open_windows=False)[stream][0]
    assert len(body) > 200_000
