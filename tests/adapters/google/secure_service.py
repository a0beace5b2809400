"""A service behind TLS and a metadata server, on this machine, and calls to them from new processes."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

OURS = """
import sys
from cloudsched.adapters.google.channel import Service, open_channel
channel = open_channel(Service(sys.argv[1], ("https://www.googleapis.com/auth/cloud-platform",)), None)
"""
CALL = """
method = channel.unary_unary("/google.firestore.v1.Firestore/Commit", bytes, bytes)
assert method(b"asked", timeout=60) == b"answered"
"""


class RecordingService(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio ships no types
    """A service that answers every call, and keeps its metadata."""

    def __init__(self) -> None:
        self.metadata: list[dict[str, str]] = []
        self.address = ""

    def service(self, _details: Any) -> Any:  # noqa: ANN401 - gRPC's own
        def answer(_: bytes, context: Any) -> bytes:  # noqa: ANN401 - the same
            self.metadata.append(dict(context.invocation_metadata()))
            return b"answered"

        return grpc.unary_unary_rpc_method_handler(answer)


class Metadata(http.server.BaseHTTPRequestHandler):
    """The metadata server of a machine of Google's."""

    lifetime = 3600
    """How many seconds its tokens are valid."""
    delay = 0.0
    """How many seconds it takes to make a token."""

    def do_GET(self) -> None:
        cls = type(self)
        if "/token" in self.path:
            time.sleep(cls.delay)
            if not cls.lifetime:
                self.send_error(500)
                return
        token = {"access_token": "of the machine", "expires_in": cls.lifetime, "token_type": "Bearer"}
        account = {"scopes": ["https://www.googleapis.com/auth/cloud-platform"], "email": "a@p", "aliases": ["default"]}
        body = json.dumps(token if "/token" in self.path else account).encode()
        if "project-id" in self.path:
            body = b"the-project"
        elif "universe" in self.path:
            body = b"googleapis.com"
        self.send_response(200)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Type", "application/json" if body.startswith(b"{") else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(BrokenPipeError):  # who asked may have given up
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Write nothing."""


def make_key() -> tuple[rsa.RSAPrivateKey, str]:
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return key, pem


@contextmanager
def run_metadata_server(lifetime: int = 3600, delay: float = 0.0) -> Iterator[str]:
    """Run a metadata server; without a lifetime it has no token, but an error."""
    kind = type("FaultyMetadata", (Metadata,), {"lifetime": lifetime, "delay": delay})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(service: RecordingService, folder: Path, certificate: str, script: str, **environment: str) -> str:
    """Run a script that calls the service in a new process, which trusts its certificate, and return what it prints."""
    roots = folder / "roots.pem"
    roots.write_text(certificate)
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "CLOUDSDK_CONFIG": str(folder / "gcloud"),
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(roots),
        **environment,
    }
    done = subprocess.run(  # noqa: S603 - our own interpreter, our own script
        (sys.executable, "-c", script, service.address), env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def call(service: RecordingService, folder: Path, certificate: str, **environment: str) -> dict[str, str]:
    """Call the service once from a new process, and return the call's metadata."""
    run(service, folder, certificate, OURS + CALL, **environment)
    return service.metadata[-1]
