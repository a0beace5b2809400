"""The built-in handler `assistant`: a part of `Settings`; see ``docs/how-to/assistant.md``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from cloudsched.config.variables import (
    SWITCH,
    Kind,
    SettingsSection,
    seconds_between,
    setting,
    whole_number,
)

_NAME = re.compile(r"[A-Za-z0-9._:/@-]{1,200}")


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split())
    wrong = next((each for each in names if not _NAME.fullmatch(each)), None)
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
