"""The language model, where there is one: a part of `Settings`; see ``docs/how-to/drafts.md``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from cloudsched.config.variables import ADDRESS, Kind, SettingsSection, seconds_between, setting

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
    """How soon and how often what is drafted may run.

    The documentation of each field stands beside it, and in ``docs/reference/configuration.md``.
    """

    least_lead: timedelta = setting(
        "CLOUDSCHED_DRAFT_LEAST_LEAD_SECONDS",
        "the shortest time between a [draft](../how-to/drafts.md) of a single run and that run: people have to read "
        "and confirm it",
        seconds_between(0, 365 * _DAY_SECONDS),
        default=timedelta(seconds=30),
    )
    least_interval: timedelta = setting(
        "CLOUDSCHED_DRAFT_LEAST_INTERVAL_SECONDS",
        "the shortest time between two runs that a draft proposes; more often is refused",
        seconds_between(0, 365 * _DAY_SECONDS),
        default=timedelta(minutes=1),
    )
