"""Parts of `Settings` for single features: language models, drafts, the assistant, scripts, the alarm, costs.

A script is a user's code in place of a handler (``docs/how-to/sandbox.md``). One that exceeds a limit fails. Prices are
in US dollars for a million of each; the defaults are Google's for us-central1 as of November 2026
(cloud.google.com/firestore/pricing, cloud.google.com/tasks/pricing, cloud.google.com/run/pricing). What queries and
tokens cost, only you know.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cloudsched.config.variables import (
    ADDRESS,
    SWITCH,
    Kind,
    SettingsSection,
    read_settings,
    seconds_between,
    setting,
    whole_number,
)
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Mapping


DEFAULT_PRICES: Final[Mapping[str, float]] = {
    "read": 0.30,
    "write": 0.90,
    "delete": 0.10,
    "queueOperation": 0.40,
    "request": 0.40,
    "query": 0.0,
    "token": 0.0,
}
_MILLION: Final = 1_000_000
_Table = tuple[tuple[str, float], ...]


def _parse(text: str) -> _Table:
    prices = dict(DEFAULT_PRICES)
    for word in text.split():
        name, _, value = word.partition("=")
        try:
            price = float(value) if value.isascii() else math.nan
        except ValueError:
            price = math.nan
        if name not in prices or not 0 <= price < math.inf:
            known = ", ".join(prices)
            raise ValueError(f"has {word!r}; it must have words such as read=0.30, of {known}, each for a million.")
        prices[name] = price
    return tuple(prices.items())


def _format(prices: _Table) -> str:
    return " ".join(f"{name}={price!r}" for name, price in prices)


_PRICE_TABLE = Kind(_parse, _format)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices(SettingsSection):
    """What things cost."""

    table: _Table = setting(
        "CLOUDSCHED_PRICES",
        "US dollars for a million of each, for [usage](../how-to/usage.md#prices): `read`, `write`, `delete`, "
        "`queueOperation`, `request`, `query`, `token`; those that are left out keep these defaults",
        _PRICE_TABLE,
        default=tuple(DEFAULT_PRICES.items()),
    )

    @property
    def per_million(self) -> dict[str, float]:
        """US dollars for a million of each."""
        return dict(self.table)

    def cost(self, amounts: Mapping[str, float]) -> float:
        """Return what some amounts cost, by the names of their prices, in dollars."""
        prices = self.per_million
        return math.fsum(amount * prices[name] for name, amount in amounts.items()) / _MILLION


_ASSISTANT_NAME = re.compile(r"[A-Za-z0-9._:/@-]{1,200}")


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split())
    wrong = next((each for each in names if not _ASSISTANT_NAME.fullmatch(each)), None)
    if wrong is not None:
        raise ValueError(f"has {wrong!r}; it must be names of models, separated by spaces.")
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantSettings(SettingsSection):
    """Whether tasks may be done by the language model, and how much one execution may use.

    The documentation of each field stands beside it, and in ``docs/reference/configuration.md``.
    """

    is_on: bool = setting(
        "CLOUDSCHED_ASSISTANT",
        "`on`: tasks may name the built-in handler [`assistant`](../how-to/assistant.md), by which the language "
        "model does what was said; needs `CLOUDSCHED_MODEL`",
        SWITCH,
        default=False,
    )
    models: tuple[str, ...] = setting(
        "CLOUDSCHED_ASSISTANT_MODELS",
        "further models of the same provider that tasks may ask for (`source.model.name`), separated by spaces",
        Kind(_parse_names, " ".join),
        default=(),
    )
    turns: int = setting(
        "CLOUDSCHED_ASSISTANT_TURNS",
        "how often one execution may ask the model; the last time it has to answer",
        whole_number(100),
        default=10,
    )
    tokens: int = setting(
        "CLOUDSCHED_ASSISTANT_TOKENS",
        "how many tokens one execution may use: the model is not asked again after them",
        whole_number(10**9),
        default=100_000,
    )
    timeout: timedelta = setting(
        "CLOUDSCHED_ASSISTANT_TIMEOUT_SECONDS",
        "how long one request of the assistant to the model may take",
        seconds_between(0.1, 120),
        default=timedelta(seconds=60),
    )


_NAME = re.compile(r"(gemini|vertex|openai):[A-Za-z0-9._:/@-]{1,200}")
_PRICES = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?/[0-9]{1,6}(\.[0-9]{1,6})?")


def _parse_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"is {text!r}; it must be gemini:NAME, vertex:NAME or openai:NAME.")
    return text


def _parse_prices(text: str) -> str:
    if not _PRICES.fullmatch(text):
        raise ValueError(f"is {text!r}; it must be two numbers of dollars, such as 0.30/2.50.")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings(SettingsSection):
    """Which language model is asked, and how.

    The documentation of each field stands beside it, and in ``docs/reference/configuration.md``.
    """

    name: str | None = setting(
        "CLOUDSCHED_MODEL",
        "the [language model](../how-to/drafts.md#a-language-model) that helps where the grammar does not understand: "
        "`gemini:NAME` with an API key, `vertex:NAME` with this program's Google credentials, or `openai:NAME` for any "
        "server that speaks OpenAI's API; without one, the grammar works alone",
        Kind(_parse_name, str),
        default=None,
    )
    key: str | None = setting(
        "CLOUDSCHED_MODEL_KEY",
        "the model's API key",
        default=None,
        is_secret=True,
    )
    url: str = setting(
        "CLOUDSCHED_MODEL_URL",
        "where the model's API is, such as `http://127.0.0.1:11434/v1`; without one, the provider's own",
        ADDRESS,
        default="",
    )
    prices: str = setting(
        "CLOUDSCHED_MODEL_PRICES",
        "what a million tokens cost, read and written, in dollars: `0.30/2.50`; without them, costs are not counted",
        Kind(_parse_prices, str),
        default="",
    )
    timeout: timedelta = setting(
        "CLOUDSCHED_MODEL_TIMEOUT_SECONDS",
        "how long one request to the model may take",
        seconds_between(0.1, 120),
        default=timedelta(seconds=4),
    )


_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftSettings(SettingsSection):
    """How soon what is drafted may run; how often is said by `Access.least_interval`.

    The documentation of each field stands beside it, and in ``docs/reference/configuration.md``.
    """

    least_lead: timedelta = setting(
        "CLOUDSCHED_DRAFT_LEAST_LEAD_SECONDS",
        "the shortest time between a [draft](../how-to/drafts.md) of a single run and that run: people have to read "
        "and confirm it",
        seconds_between(0, 365 * _DAY_SECONDS),
        default=timedelta(seconds=30),
    )


_MIB = 1024 * 1024
_KIB = 1024


def _parse_filter(text: str) -> bool:
    if text not in {"required", "best-effort"}:
        raise ValueError(f"is {text!r}; it must be required or best-effort.")
    return text == "required"


_FILTER = Kind(_parse_filter, lambda value: "required" if value else "best-effort")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox(SettingsSection):
    """The limits of one execution of a script. Sizes are in bytes.

    The documentation of each field stands beside it, and in ``docs/reference/configuration.md``.
    """

    memory: int = setting(
        "CLOUDSCHED_SANDBOX_MEMORY_MIB",
        "how many MiB of memory one script may use ([scripts](scripts.md#limits) explains this and the following "
        "settings)",
        whole_number(4096, unit=_MIB),
        default=64 * _MIB,
    )
    time: timedelta = setting(
        "CLOUDSCHED_SANDBOX_SECONDS",
        "how long one script may run; waiting does not count",
        seconds_between(0.01, 3600),
        default=timedelta(seconds=5),
    )
    output: int = setting(
        "CLOUDSCHED_SANDBOX_OUTPUT_KIB",
        "how many KiB its result, its log and what it passes to tools may have together",
        whole_number(32 * 1024, unit=_KIB),
        default=256 * _KIB,
    )
    calls: int = setting(
        "CLOUDSCHED_SANDBOX_CALLS",
        "how many calls and sleeps one execution of a script may ask for",
        whole_number(2000),
        default=100,
    )
    requires_filter: bool = setting(
        "CLOUDSCHED_SANDBOX_FILTER",
        "`required`: scripts run only where the kernel filters their system calls; `best-effort`: "
        "elsewhere as well, with a warning; refused in the cloud",
        _FILTER,
        default=True,
    )

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> Sandbox:
        """Read the limits from variables; those not set keep their defaults.

        Raises:
            Misconfigured: A variable cannot be understood. The message names it.
        """
        sandbox = cls(**read_settings(cls, env))
        if not sandbox.requires_filter and "K_SERVICE" in env:
            raise Misconfigured(
                "CLOUDSCHED_SANDBOX_FILTER=best-effort is for machines without secrets; in the cloud it is required."
            )
        return sandbox


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
