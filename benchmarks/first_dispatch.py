"""The process of a `ColdExecutor`: it serves one dispatch with the deployed executor, and reports.

    python benchmarks/first_dispatch.py DESCRIPTOR SOURCE

DESCRIPTOR is a listening socket at which Cloud Tasks delivers, SOURCE the `main.py` with the functions. The report is
one line of JSON on standard output: the seconds of processor time until the application was ready and until the first
response was sent, and the modules that were imported.
"""

from __future__ import annotations

import sys
import time

STARTED = time.process_time()
"""Before anything but what the interpreter itself needs is imported."""


def main() -> None:
    """Serve one dispatch and print the report."""
    descriptor, source = sys.argv[1:]
    import functions_framework  # noqa: PLC0415 - what is imported is measured

    application = functions_framework.create_app("execute", source)  # type: ignore[no-untyped-call]
    ready = time.process_time()
    status = serve_once(int(descriptor), application)
    answered = time.process_time()
    modules = sorted(sys.modules)
    credentials = measure_credentials()

    import json  # noqa: PLC0415 - only for the report

    report = {"ready": ready - STARTED, "answered": answered - STARTED, "status": status, "modules": modules}
    report["credentials"] = credentials
    sys.stdout.write(json.dumps(report) + "\n")


def measure_credentials() -> float:
    """Return what Google's side needs as well, beside all that is imported: the libraries that find credentials."""
    start = time.process_time()
    import google.auth.compute_engine  # noqa: F401, PLC0415 - what `google.auth.default` imports in Cloud Run

    import cloudsched.adapters.google.channel  # noqa: F401, PLC0415 - what a channel to Google imports

    return time.process_time() - start


def serve_once(descriptor, application) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001 - types would be imported
    """Answer one request on a socket that listens already, and return the response's status."""
    import socket  # noqa: PLC0415 - the server is a part of what is measured
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer  # noqa: PLC0415 - the same

    statuses = []

    def record(environ, start_response):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - see above
        def start(status, headers, exc_info=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - see above
            statuses.append(status)
            return start_response(status, headers, exc_info)

        return application(environ, start)

    class SilentHandler(WSGIRequestHandler):
        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = WSGIServer(("127.0.0.1", 0), SilentHandler, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=descriptor)
    server.server_name, server.server_port = server.socket.getsockname()
    server.setup_environ()
    server.set_app(record)
    server.handle_request()
    return statuses[0] if statuses else "no response"


if __name__ == "__main__":
    main()
