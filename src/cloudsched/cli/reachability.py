"""What to do when nothing answers at the API's address."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

_TIMEOUT_SECONDS = 1.0


def explain_unreachable(url: str) -> str:
    """Return a hint for an API that cannot be reached: on this machine, whether `cloudsched dev` seems not to run."""
    if hint := find_missing_stack(url):
        return hint
    host, port = _host_and_port(url)
    if not _is_loopback(host):
        return ""
    return f"Something listens on {host}:{port}, but not the API: is it the port of cloudsched dev?"


def find_missing_stack(url: str) -> str:
    """Return a hint if the address is on this machine and nothing listens there; else nothing."""
    host, port = _host_and_port(url)
    if not _is_loopback(host) or _accepts_connections(host, port):
        return ""
    place = f"{host}:{port}"
    return (
        f"Nothing listens on {place}, so cloudsched dev seems not to run. Start it in another terminal, or name "
        "another API with --url or CLOUDSCHED_URL."
    )


def is_this_machine(url: str) -> bool:
    """Return whether an address is on this machine."""
    return _is_loopback(_host_and_port(url)[0])


def _is_loopback(host: str) -> bool:
    from cloudsched.domain.local_requests import is_loopback  # noqa: PLC0415 - not needed for --help

    return is_loopback(host)


def _host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _accepts_connections(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT_SECONDS):
            return True
    except OSError:
        return False
