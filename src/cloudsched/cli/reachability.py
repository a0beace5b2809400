"""What to do when nothing answers at the API's address."""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

_TIMEOUT_SECONDS = 1.0


def explain_unreachable(url: str) -> str:
    """Return a hint for an API that cannot be reached: on this machine, whether `cloudsched dev` seems not to run."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not _is_this_machine(host):
        return ""
    place = f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    if _accepts_connections(host, parts.port or 80):
        return f"Something listens on {place}, but not the API: is it the port of cloudsched dev?"
    return (
        f"Nothing listens on {place}, so cloudsched dev seems not to run. Start it in another terminal, or name "
        "another API with --url or CLOUDSCHED_URL."
    )


def _is_this_machine(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _accepts_connections(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT_SECONDS):
            return True
    except OSError:
        return False
