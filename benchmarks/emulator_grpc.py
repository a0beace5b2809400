"""Measure a gRPC call at the emulator's own server, compared with grpcio's asyncio server for the same calls.

    python benchmarks/emulator_grpc.py

The figure is the processor time of the server process for each CreateTask, which other load on the machine hardly
changes. grpcio is measured on a port of its own, without the proxy that it would need to share one port with REST.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport

from cloudsched.emulator.api.methods import task_methods
from cloudsched.emulator.api.tasks_service import CloudTasksService
from cloudsched.emulator.http.grpc import GrpcConnection
from cloudsched.emulator.model.queue import QueueConfig
from cloudsched.emulator.model.queues import Queues

QUEUE = "projects/demo/locations/here/queues/q"
CALLS = 6000


def make_methods() -> dict[str, object]:
    """Return the emulator's task methods, with one empty queue, by their gRPC paths."""
    queues = Queues()
    queues.create_queue(QUEUE, QueueConfig(), datetime.now(UTC))
    service = CloudTasksService(queues, lambda: datetime.now(UTC), lambda _dispatch: None, random.Random(1))  # noqa: S311 - ids
    return {method.grpc: method for method in task_methods(service)}


async def serve(kind: str) -> None:
    """Print the port and serve until killed, with our server (`ours`) or that of grpcio (`grpcio`)."""
    methods: dict[str, object] = make_methods()

    def call(path: str, message: bytes) -> bytes:
        method = methods[path]
        request = method.request.FromString(message)  # type: ignore[attr-defined]
        return bytes(method.call(request).SerializeToString())  # type: ignore[attr-defined]

    if kind == "ours":
        server = await asyncio.get_running_loop().create_server(lambda: GrpcConnection(call), "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()
        return

    class Generic(grpc.GenericRpcHandler):  # type: ignore[misc]
        """Handles every method, with requests and responses as bytes."""

        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            async def handle(message: bytes, _context: object) -> bytes:
                return call(details.method, message)

            return grpc.unary_unary_rpc_method_handler(handle)

    grpcio_server = grpc.aio.server()
    grpcio_server.add_generic_rpc_handlers((Generic(),))
    print(grpcio_server.add_insecure_port("127.0.0.1:0"), flush=True)
    await grpcio_server.start()
    await grpcio_server.wait_for_termination()


def read_processor_seconds(pid: int) -> float:
    """Return the processor time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def measure(kind: str) -> float:
    """Run a server and return its microseconds of processor time for each call."""
    process = subprocess.Popen([sys.executable, __file__, kind], stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        assert process.stdout is not None
        address = f"127.0.0.1:{process.stdout.readline().strip()}"
        client = tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=grpc.insecure_channel(address)))
        task = tasks_v2.Task(
            http_request={"url": "http://127.0.0.1:9/"}, schedule_time=datetime.now(UTC) + timedelta(hours=1)
        )
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _n: client.create_task(parent=QUEUE, task=task), range(500)))
            before = read_processor_seconds(process.pid)
            list(pool.map(lambda _n: client.create_task(parent=QUEUE, task=task), range(CALLS)))
            return (read_processor_seconds(process.pid) - before) / CALLS * 1e6
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    if sys.argv[1:]:
        asyncio.run(serve(sys.argv[1]))
    else:
        ours, theirs = measure("ours"), measure("grpcio")
        print(f"our server, µs a call      {ours:8.0f}")
        print(f"grpcio's asyncio server    {theirs:8.0f}   ratio {theirs / ours:.2f}")
