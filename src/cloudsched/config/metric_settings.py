"""What metrics are broken down by: a part of `Settings`; see ``docs/reference/logs.md``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cloudsched.config.variables import Kind, SettingsSection, setting

MAX_LABEL_KEYS = 3
"""How many keys may be named: each multiplies the number of time series."""
_KEY = re.compile(r"[a-z][a-z0-9_.-]{0,62}")


def _parse_keys(text: str) -> tuple[str, ...]:
    keys = tuple(dict.fromkeys(text.split()))
    wrong = next((each for each in keys if not _KEY.fullmatch(each)), None)
    if wrong is not None:
        raise ValueError(f"has {wrong!r}; each must be the key of a label, such as team.")
    if len(keys) > MAX_LABEL_KEYS:
        raise ValueError(f"has {len(keys)} keys; there may be {MAX_LABEL_KEYS}: each multiplies what metrics cost.")
    return keys


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSettings(SettingsSection):
    """Which labels of tasks metrics have.

    The documentation of each field stands beside it, and in ``docs/reference/configuration.md``.
    """

    label_keys: tuple[str, ...] = setting(
        "CLOUDSCHED_METRIC_LABELS",
        "the keys of tasks' labels that [OpenTelemetry metrics](logs.md#traces-and-metrics) are broken down by, "
        "at most 3, separated by spaces",
        Kind(_parse_keys, " ".join),
        default=(),
    )
