"""Which dead-man's switch the sweep calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from cloudsched.config.variables import Kind, SettingsSection, seconds_between, setting

_MOST_ADDRESSES: Final = 2
_METADATA_NAMES: Final = frozenset({"metadata", "metadata.google.internal"})


def _parse_addresses(text: str) -> tuple[str, ...]:
    """Return the addresses. No message shows one: whoever knows it can silence the alarm."""
    addresses = tuple(text.split())
    if len(addresses) > _MOST_ADDRESSES:
        raise ValueError(f"has {len(addresses)} addresses; it must have one, or one for success and one for failure.")
    for number, address in enumerate(addresses, 1):
        problem = _find_problem(address)
        if problem:
            raise ValueError(f"has an address, number {number}, that {problem}.")
    return addresses


def _find_problem(address: str) -> str:
    try:
        parts = urlsplit(address)
        host, has_valid_port = (parts.hostname or "").rstrip("."), parts.port != 0
    except ValueError:
        return "is not a URL"
    if not host or not has_valid_port or not (address.isascii() and address.isprintable()):
        return "is not a URL"
    if parts.username is not None or parts.password is not None:
        return "contains a user or a password"
    if _is_metadata_server(host):
        return "leads to a metadata server"
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_near(host)):
        return "is not https; http is for this machine and its own network"
    return ""


def _is_metadata_server(host: str) -> bool:
    """Return whether a host is one by its looks; what its name leads to is checked at each connection."""
    try:
        return ip_address(host).is_link_local
    except ValueError:
        return host in _METADATA_NAMES


def _is_near(host: str) -> bool:
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host  # localhost, or a container's name


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepAlarmSettings(SettingsSection):
    """Whom the sweep tells that it runs.

    The documentation of each field stands beside it, and in ``docs/reference/configuration.md``.
    """

    addresses: tuple[str, ...] = setting(
        "CLOUDSCHED_SWEEP_PING",
        "the address of a [dead-man's switch](../how-to/alerts.md#a-dead-mans-switch) that is called after each good "
        "sweep; after a space, the one for bad sweeps. Whoever knows them can silence the alarm: keep them secret",
        Kind(_parse_addresses, " ".join),
        default=(),
        is_secret=True,
    )
    overdue: timedelta = setting(
        "CLOUDSCHED_SWEEP_PING_OVERDUE_SECONDS",
        "for how long work may have been due, at most, in a good sweep",
        seconds_between(60, 86_400),
        default=timedelta(minutes=10),
    )
