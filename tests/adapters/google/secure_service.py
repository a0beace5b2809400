"""A service behind TLS and a metadata server, on this machine, and calls to them from new processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from werkzeug.wrappers import Request, Response

from cloudsched.local.wsgi_server import WebServer

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
OURS = """
import sys
from cloudsched.adapters.google.channel import GoogleService, open_channel
channel = open_channel(GoogleService(sys.argv[1], ("https://www.googleapis.com/auth/cloud-platform",)), None)
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


def make_key() -> tuple[rsa.RSAPrivateKey, str]:
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return key, pem


@contextmanager
def run_metadata_server(lifetime: int = 3600, delay: float = 0.0) -> Iterator[str]:
    """Run the metadata server of a machine of Google's; without a lifetime it has no token, but an error.

    Args:
        lifetime: How many seconds its tokens are valid.
        delay: How many seconds it takes to make a token.
    """

    @Request.application
    def answer(request: Request) -> Response:
        content: object = {"scopes": [SCOPE], "email": "a@p", "aliases": ["default"]}
        if "/token" in request.path:
            time.sleep(delay)
            content = {"access_token": "of the machine", "expires_in": lifetime, "token_type": "Bearer"}
        body, kind = json.dumps(content), "application/json"
        if "project-id" in request.path:
            body, kind = "the-project", "text/plain"
        elif "universe" in request.path:
            body, kind = "googleapis.com", "text/plain"
        is_refused = "/token" in request.path and not lifetime
        return Response(body, 500 if is_refused else 200, {"Metadata-Flavor": "Google"}, content_type=kind)

    with WebServer(answer) as server:
        server.serve()
        yield server.address


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
