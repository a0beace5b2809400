"""Find time zones by the names that people use, IANA names, cities, regions and abbreviations, and whose holidays."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.time_zones import SHARED
from cloudsched.language.lexicon import MARK, PATH, WORD, Token

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMED = {
    **{name.lower(): zones for name, zones in SHARED.items()},
    "utc": ("UTC",),
    "gmt": ("Etc/GMT",),
    "zulu": ("UTC",),
    "edt": ("America/New_York",),
    "et": ("America/New_York",),
    "eastern": ("America/New_York",),
    "cdt": ("America/Chicago",),
    "ct": ("America/Chicago",),
    "mdt": ("America/Denver",),
    "mt": ("America/Denver",),
    "pst": ("America/Los_Angeles",),
    "pdt": ("America/Los_Angeles",),
    "pt": ("America/Los_Angeles",),
    "pacific": ("America/Los_Angeles",),
    "central": ("America/Chicago",),
    "mountain": ("America/Denver",),
    "cet": ("CET",),
    "cest": ("CET",),
    "mez": ("CET",),
    "mesz": ("CET",),
    "eet": ("EET",),
    "eest": ("EET",),
    "wet": ("WET",),
    "msk": ("Europe/Moscow",),
    "jst": ("Asia/Tokyo",),
    "kst": ("Asia/Seoul",),
    "aedt": ("Australia/Sydney",),
    "nzst": ("Pacific/Auckland",),
    "nzdt": ("Pacific/Auckland",),
    "hst": ("Pacific/Honolulu",),
    "akst": ("America/Anchorage",),
    "beijing": ("Asia/Shanghai",),
    "peking": ("Asia/Shanghai",),
    "mumbai": ("Asia/Kolkata",),
    "delhi": ("Asia/Kolkata",),
    "new delhi": ("Asia/Kolkata",),
    "bangalore": ("Asia/Kolkata",),
    "washington": ("America/New_York",),
    "boston": ("America/New_York",),
    "miami": ("America/New_York",),
    "atlanta": ("America/New_York",),
    "san francisco": ("America/Los_Angeles",),
    "seattle": ("America/Los_Angeles",),
    "las vegas": ("America/Los_Angeles",),
    "dallas": ("America/Chicago",),
    "houston": ("America/Chicago",),
    "munich": ("Europe/Berlin",),
    "hamburg": ("Europe/Berlin",),
    "frankfurt": ("Europe/Berlin",),
    "cologne": ("Europe/Berlin",),
    "geneva": ("Europe/Zurich",),
    "barcelona": ("Europe/Madrid",),
    "milan": ("Europe/Rome",),
    "edinburgh": ("Europe/London",),
    "kiev": ("Europe/Kyiv",),
    "osaka": ("Asia/Tokyo",),
    "montreal": ("America/Toronto",),
    "rio": ("America/Sao_Paulo",),
    "uk": ("Europe/London",),
    "german": ("Europe/Berlin",),
    "central european": ("CET",),
    "eastern european": ("EET",),
}
_EXONYMS = {
    "Europe/Berlin": "münchen köln berlijn keulen",
    "Europe/Rome": "rom mailand milaan",
    "Europe/Lisbon": "lissabon",
    "Europe/Vienna": "wien wenen",
    "Europe/Zurich": "zürich genf",
    "Europe/Brussels": "brüssel brussel antwerpen gent",
    "Europe/Warsaw": "warschau",
    "Europe/Prague": "prag praag",
    "Europe/Athens": "athen athene",
    "Europe/Moscow": "moskau moskou",
    "Europe/Kyiv": "kiew",
    "Europe/Bucharest": "bukarest",
    "Europe/Copenhagen": "kopenhagen",
    "Europe/London": "londen",
    "Europe/Paris": "parijs",
    "Africa/Cairo": "kairo",
    "Asia/Tokyo": "tokio",
    "Asia/Shanghai": "schanghai",
    "Asia/Singapore": "singapur",
    "Asia/Hong_Kong": "hongkong",
    "America/Mexico_City": "mexiko",
}
"""The German and Dutch names of cities."""
REGIONS = frozenset({"eastern", "central", "mountain", "pacific", "et", "ct", "mt", "pt"})
"""Words that name a zone behind a time of day, and have other meanings elsewhere."""
NO_CITIES = frozenset({"et", "ct", "mt", "pt", "eastern", "pacific", "central", "mountain", "rio", "uk", "german"})
"""Words that name a zone before a word such as "time" alone."""
WORDS_TOO = frozenset({"wet", "ist"})
"""Abbreviations of zones that are words as well: zones only right behind a time, and before a word such as "time"."""
_MOST_WORDS = 4


@lru_cache(maxsize=1)
def _load_cities() -> dict[str, tuple[str, ...]]:
    """Return the cities of the time zone database and the names above."""
    result: dict[str, tuple[str, ...]] = {}
    for name in time_zones.in_use.names:
        area, _, city = name.rpartition("/")
        if area and not area.startswith(
            ("Etc", "posix", "right", "SystemV", "US", "Canada", "Brazil", "Mexico", "Chile")
        ):
            key = city.replace("_", " ").replace("-", " ").lower()
            if len(key) > 3:
                result.setdefault(key, (name,))
    other = {name: (zone,) for zone, names in _EXONYMS.items() for name in names.split()}
    plain = {_fold_accents(name): zones for name, zones in other.items()}
    return result | plain | other | _NAMED


def _fold_accents(text: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))


@lru_cache(maxsize=1)
def _find_iana() -> dict[str, str]:
    return {name.lower(): name for name in time_zones.in_use.names}


def find_place(tokens: Sequence[Token], at: int) -> tuple[tuple[str, ...], int, bool] | None:
    """Return the zones that the words here may name, the token after them, and whether the word "time" must follow.

    A city needs it as well, unless a preposition precedes it.
    """
    token = tokens[at]
    if token.kind == PATH:
        name = _find_iana().get(token.text.lower())
        if name is not None:
            return (name,), at + 1, False
        return _parse_offset(token.text.upper(), at)
    if token.kind != WORD:
        return None
    if token.text in {"utc", "gmt"} and at + 2 < len(tokens) and tokens[at + 1].text in {"+", "-"}:
        return None
    words: list[str] = []
    best: tuple[tuple[str, ...], int, bool] | None = None
    end = at
    while end < len(tokens) and len(words) < _MOST_WORDS:
        if tokens[end].kind == WORD:
            words.append(tokens[end].text)
        elif not (tokens[end].kind == MARK and tokens[end].text == "-"):
            break
        end += 1
        key = " ".join(words)
        zones = _load_cities().get(key)
        if zones is not None:
            abbreviation = key in _NAMED and len(key) in {3, 4}
            best = zones, end, key in NO_CITIES or not abbreviation
        zones = _load_cities().get(key.removesuffix("er"))  # German: "Londoner Zeit"
        if zones is not None and best is None and key.endswith("er"):
            best = zones, end, True
    if best is None and token.text in _find_iana():
        best = (_find_iana()[token.text],), at + 1, True
    return best


def _parse_offset(text: str, at: int) -> tuple[tuple[str, ...], int, bool] | None:
    """Return the zone of a fixed offset of whole hours, such as UTC+2."""
    if text[:3] not in {"UTC", "GMT"}:
        return None
    hours, _, minutes = text[3:].partition(":")
    if int(minutes or 0) or not -12 <= int(hours) <= 14:
        return None
    return ((f"Etc/GMT{-int(hours):+}" if int(hours) else "UTC"),), at + 1, False


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
