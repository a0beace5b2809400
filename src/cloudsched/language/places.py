"""Find time zones by the names that people use, IANA names, cities, regions and abbreviations, and whose holidays."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.time_zones import SHARED
from cloudsched.language.lexicon import PATH, WORD, Token

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES: Final = {
    "UTC": "UTC|ZULU",
    "Etc/GMT": "GMT",
    "America/New_York": "EDT|ET|eastern|washington|boston|miami|atlanta",
    "America/Chicago": "CDT|CT|central|dallas|houston",
    "America/Denver": "MDT|MT|mountain",
    "America/Los_Angeles": "PST|PDT|PT|pacific|san francisco|seattle|las vegas",
    "America/Anchorage": "AKST",
    "America/Mexico_City": "mexiko",
    "America/Sao_Paulo": "rio",
    "America/Toronto": "montreal",
    "Africa/Cairo": "kairo",
    "Asia/Hong_Kong": "hongkong",
    "Asia/Kolkata": "mumbai|delhi|new delhi|bangalore",
    "Asia/Seoul": "KST",
    "Asia/Shanghai": "beijing|peking|schanghai",
    "Asia/Singapore": "singapur",
    "Asia/Tokyo": "JST|osaka|tokio",
    "Australia/Sydney": "AEDT",
    "CET": "CET|CEST|MEZ|MESZ|central european",
    "EET": "EET|EEST|eastern european",
    "Europe/Athens": "athen|athene",
    "Europe/Berlin": "munich|hamburg|frankfurt|cologne|german|münchen|munchen|köln|koln|berlijn|keulen",
    "Europe/Brussels": "brüssel|brussel|antwerpen|gent",
    "Europe/Bucharest": "bukarest",
    "Europe/Copenhagen": "kopenhagen",
    "Europe/Kyiv": "KIEV|kiew",
    "Europe/Lisbon": "lissabon",
    "Europe/London": "edinburgh|uk|londen",
    "Europe/Madrid": "barcelona",
    "Europe/Moscow": "MSK|moskau|moskou",
    "Europe/Paris": "parijs",
    "Europe/Prague": "prag|praag",
    "Europe/Rome": "milan|rom|mailand|milaan",
    "Europe/Vienna": "wien|wenen",
    "Europe/Warsaw": "warschau",
    "Europe/Zurich": "geneva|zürich|genf",
    "Pacific/Auckland": "NZST|NZDT",
    "Pacific/Honolulu": "HST",
    "WET": "WET",
}
"""Names that the time zone database does not have, or has for another zone. Those in capitals need no word such as
"time" after them."""
REGIONS: Final = "eastern|central|mountain|pacific|et|ct|mt|pt"
"""Words that name a zone behind a time of day, and have other meanings elsewhere."""
NO_CITIES: Final = REGIONS + "|rio|uk|german"
"""Words that name a zone before a word such as "time" alone."""
WORDS_TOO: Final = "wet|ist"
"""Abbreviations of zones that are words as well: zones only right behind a time, and before a word such as "time"."""
_MOST_TOKENS = 5
"""Those of Port-au-Prince."""
_NO_AREAS: Final = ("Etc", "posix", "right", "SystemV", "US", "Canada", "Brazil", "Mexico", "Chile")
"""Parts of the database in which no names are of cities."""


@lru_cache(maxsize=1)
def _load_zones() -> dict[str, tuple[tuple[str, ...], bool]]:
    """Return the zones that each name may mean, and whether a word such as "time" must follow it.

    They are the names of the time zone database, its cities, and the names above.
    """
    result: dict[str, tuple[tuple[str, ...], bool]] = {}
    for name in sorted(time_zones.in_use.names):
        area, _, city = name.rpartition("/")
        key = city.replace("_", " ").replace("-", " ").lower()
        if area and len(key) > 3 and not area.startswith(_NO_AREAS):
            result.setdefault(key, ((name,), True))
        result.setdefault(name.lower(), ((name,), True))
    for hours in range(-12, 15):
        offset = (f"Etc/GMT{-hours:+}" if hours else "UTC",), False
        result[f"utc{hours:+}"] = result[f"gmt{hours:+}"] = offset
    for zone, names in _NAMES.items():
        for name in names.split("|"):
            key = name.lower()
            result[key] = (zone,), key in NO_CITIES.split("|") or not name.isupper()
    return result | {name.lower(): (zones, False) for name, zones in SHARED.items()}


def find_place(tokens: Sequence[Token], at: int) -> tuple[tuple[str, ...], int, bool] | None:
    """Return the zones that the words here may name, the token after them, and whether the word "time" must follow.

    A city needs it as well, unless a preposition precedes it.
    """
    token = tokens[at]
    if token.kind == PATH:
        named = _load_zones().get(re.sub(r"([+-])0?(\d+)(:00)?\Z", r"\1\2", token.text.lower()))
        return None if named is None else (named[0], at + 1, False)
    if token.kind != WORD:
        return None
    if token.text in {"utc", "gmt"} and at + 2 < len(tokens) and tokens[at + 1].text in {"+", "-"}:
        return None
    known = _load_zones()
    words: list[str] = []
    best: tuple[tuple[str, ...], int, bool] | None = None
    for end, token in enumerate(tokens[at : at + _MOST_TOKENS], at + 1):
        if token.kind == WORD:
            words.append(token.text)
        elif token.text != "-":
            break
        key = " ".join(words)
        if key in known:
            best = known[key][0], end, known[key][1]
        elif best is None and key != "meter" and key.endswith("er") and (key := key.removesuffix("er")) in known:
            best = known[key][0], end, True  # German: "Londoner Zeit"
    return best


COUNTRIES = {
    "US": r"usa?|u s|america\w*|amerika\w*|vs",
    "CA": r"canad\w*|kanad\w*",
    "GB": r"uk|u k|brit\w*",
    "GB-SCT": r"scot\w*|schot\w*",
    "IE": r"iri?sch\w*|irish|ireland|irland|iers\w*|ierland",
    "AU": r"austral\w*",
    "AT": r"austria\w*|(ö|oe)sterr\w*|oostenr\w*",
    "CH": r"swiss|switz\w*|schweiz\w*|zwits\w*",
    "DE": r"german\w*|deutsch\w*|duits\w*",
    "FR": r"french|france|franz\w*|frankr\w*|frans\w*",
    "NL": r"dutch|netherl\w*|niederl\w*|nederl\w*",
    "BE": r"belg\w*",
    "IT": r"ital\w*",
    "ES": r"spain|spani\w*|spaans\w*",
    "PL": r"polish|poland|poln\w*|polen|pools\w*",
    "DE-BW": r"baden - w\w*",
    "DE-BY": r"bavaria\w*|baye?r\w*|beier\w*",
    "DE-BE": r"berlin\w*",
    "DE-BB": r"brandenb\w*",
    "DE-HB": r"brem\w*",
    "DE-HH": r"hamb\w*",
    "DE-HE": r"hess\w*",
    "DE-MV": r"meckl\w* - (western )?\w*",
    "DE-NI": r"lower sax\w*|nieders\w*|nedersa\w*",
    "DE-NW": r"nrw|north rhine - \w*|nordrh\w* - \w*|noordr\w* - \w*",
    "DE-RP": r"(rh\w*|rijn\w*) - p\w*",
    "DE-SL": r"saarl\w*",
    "DE-ST": r"sa\w* - anh\w*",
    "DE-SN": r"sax\w*|sachs\w*|s(ä|ae)chs\w*|saks\w*",
    "DE-SH": r"(schles|slees)\w* - \w*",
    "DE-TH": r"th(ü|ue?)r\w*",
}
"""Words for countries and their parts, in every language, by the codes of ISO 3166 that calendars of holidays have."""
