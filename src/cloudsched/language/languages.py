"""The languages that are read, and which of them a locale names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cloudsched.language.english import ENGLISH
from cloudsched.language.french import FRENCH
from cloudsched.language.german import GERMAN
from cloudsched.language.spanish import SPANISH

if TYPE_CHECKING:
    from cloudsched.language.lexicon import Language

LANGUAGES: Final[dict[str, Language]] = {"en": ENGLISH, "de": GERMAN, "fr": FRENCH, "es": SPANISH}
_MONTH_FIRST: Final = frozenset({"US", "PH", "CA", "BZ"})
"""The regions that write the month first in ``3/4``, if their language leaves it open."""


def is_known(locale: str) -> bool:
    """Return whether schedules are read in the language of a locale."""
    return locale.replace("_", "-").partition("-")[0].lower() in LANGUAGES


def find_language(locale: str) -> Language:
    """Return the language of a locale, with its region's order of day and month.

    Raises:
        ValueError: The language is not supported.
    """
    code, _, region = locale.replace("_", "-").partition("-")
    language = LANGUAGES.get(code.lower())
    if language is None:
        raise ValueError(f"locale {locale!r} is not supported; use one of {', '.join(LANGUAGES)}")
    return apply_region(language, region.upper())


_REGIONAL: dict[tuple[str, bool], Language] = {}


def apply_region(language: Language, region: str) -> Language:
    """Return a language with a region's order of day and month."""
    if not region or language.month_first is not None:
        return language
    key = language.code, region in _MONTH_FIRST
    if key not in _REGIONAL:
        _REGIONAL[key] = replace(language, month_first=key[1])
    return _REGIONAL[key]
