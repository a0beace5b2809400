"""Words with a typing error: those of the lexicon that may be meant."""

from __future__ import annotations

from functools import cache
from operator import ne
from typing import TYPE_CHECKING

from cloudsched.language.languages import LANGUAGES, find_languages
from cloudsched.language.lexicon import PLAIN, WORD, Language, Matches, Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SHORTEST = 4
"""The least length of a word that may have an error. Longer ones were not meant as typed."""
_UNLIKELY = PLAIN | frozenset(
    "half-known vague some holiday condition no-title relocate postpone make intro".split()  # noqa: SIM905
)
"""The classes of words that make no schedule, so that no other word was probably meant as one of them."""
_MOST_WORDS = 4
_MOST_CANDIDATES = 3


def find_corrections(
    tokens: Sequence[Token], matches: Sequence[Matches], language: Language
) -> Iterator[tuple[list[Token], list[tuple[Token, str]]]]:
    """Yield the phrase with one unknown word corrected, for each that may be a typo, and then with all of them.

    With it, yield the words as typed, each with what it was meant to be.
    """
    found = [
        [(token, word) for word in find_candidates(token.text, language)[:_MOST_CANDIDATES]]
        for token, here in zip(tokens, matches, strict=True)
        if token.kind == WORD and not here and not find_languages(token.text, language)
    ]
    slips = list(filter(None, found))[:_MOST_WORDS]
    changes = [[slip] for some in slips for slip in some]
    if len(slips) > 1:
        changes.append([some[0] for some in slips])
    for change in changes:
        meant = dict(change)
        yield [each._replace(text=meant.get(each, each.text)) for each in tokens], change


def find_candidates(word: str, language: Language) -> list[str]:
    """Return the words of the lexicon one edit away: a letter missing, added or changed, or two of them swapped."""
    if len(word) < SHORTEST:
        return []
    index = _build_index(language.code)
    found = {
        one
        for part in _drop_letters(word)
        for one in index.get(part, ())
        if len(one) != len(word) or 1 <= sum(map(ne, one, word)) <= 1 + (sorted(one) == sorted(word))
    }
    return sorted(found, key=lambda one: (one[0] != word[0], -len(one), one))


def is_close(typed: str, meant: str) -> bool:
    """Return whether a word is probably another one with a typing error."""
    return max(len(typed), len(meant)) > SHORTEST and typed[0] == meant[0] and typed != f"{meant}s"


def is_misspelt(word: str, language: Language) -> bool:
    """Return whether a word outside the lexicon is probably one of it with a typing error."""
    return word not in language.innocent and any(is_close(word, meant) for meant in find_candidates(word, language))


@cache
def _build_index(code: str) -> dict[str, set[str]]:
    """Return an index from each spelling, with at most one letter dropped, to the lexicon's words."""
    index: dict[str, set[str]] = {}
    for word, entries in LANGUAGES[code].entries.items():
        is_likely = any(kind not in _UNLIKELY for _, kind, _ in entries)
        if is_likely and len(word) >= SHORTEST and word.isalpha():
            for part in _drop_letters(word):
                index.setdefault(part, set()).add(word)
    return index


def _drop_letters(word: str) -> list[str]:
    return [word, *(word[:place] + word[place + 1 :] for place in range(len(word)))]
