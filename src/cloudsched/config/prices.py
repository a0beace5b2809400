"""What things cost, in US dollars for a million of each: a part of `Settings`.

The defaults are Google's prices for us-central1 as of November 2026 (cloud.google.com/firestore/pricing,
cloud.google.com/tasks/pricing, cloud.google.com/run/pricing). What queries and tokens cost, only you know.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.config.variables import Kind, SettingsSection, setting

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


_PRICES = Kind(_parse, _format)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices(SettingsSection):
    """What things cost."""

    table: _Table = setting(
        "CLOUDSCHED_PRICES",
        "US dollars for a million of each, for [usage and forecasts](../how-to/usage.md#prices): `read`, `write`, "
        "`delete`, `queueOperation`, `request`, `query`, `token`; those that are left out keep these defaults",
        _PRICES,
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
