"""What a gRPC call costs the emulator's own server, beside grpcio's asyncio server that makes the same calls.

    python benchmarks/emulator_grpc.py

Processor time of the server process for each CreateTask, which other load on the machine hardly changes. grpcio is
measured on a port of its own, without the proxy that sharing one port with REST would need.
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
    """The emulator's calls over an empty board."""
    board = Queues()
    board.create_queue(QUEUE, QueueConfig(), datetime.now(UTC))
    calls = CloudTasksService(board, lambda: datetime.now(UTC), lambda _dispatch: None, random.Random(1))  # noqa: S311 - ids
    return {method.grpc: method for method in task_methods(calls)}


async def serve(kind: str) -> None:
    """Serve until killed; prints the port."""
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
        """Every method, as bytes."""

        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            async def handle(message: bytes, _context: object) -> bytes:
                return call(details.method, message)

            return grpc.unary_unary_rpc_method_handler(handle)

    other = grpc.aio.server()
    other.add_generic_rpc_handlers((Generic(),))
    print(other.add_insecure_port("127.0.0.1:0"), flush=True)
    await other.start()
    await other.wait_for_termination()


def processor_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def measure(kind: str) -> float:
    """Microseconds of processor time for each call."""
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
            before = processor_seconds(process.pid)
            list(pool.map(lambda _n: client.create_task(parent=QUEUE, task=task), range(CALLS)))
            return (processor_seconds(process.pid) - before) / CALLS * 1e6
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
