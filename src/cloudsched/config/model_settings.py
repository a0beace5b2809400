"""The language models of drafts and of the assistant: a part of `Settings`; see ``docs/how-to/drafts.md``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from cloudsched.config.variables import (
    ADDRESS,
    SWITCH,
    Kind,
    SettingsSection,
    seconds_between,
    setting,
    whole_number,
)

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
