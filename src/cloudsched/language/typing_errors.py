"""Words with a typing error: those of the lexicon that may be meant."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cloudsched.language.languages import LANGUAGES, find_languages
from cloudsched.language.lexicon import PLAIN, WORD, Language, Matches, Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SHORTEST = 4
"""The least length of a word that may have an error. Longer ones were not meant as typed."""
_UNLIKELY = PLAIN | frozenset(
    "half-known modifier vague some holiday condition no-title relocate postpone make intro".split()  # noqa: SIM905
)
"""The classes of words that make no schedule, so that no other word was probably meant as one of them."""
_MOST_WORDS = 4
_MOST_CANDIDATES = 3


def find_corrections(tokens: Sequence[Token], matches: Sequence[Matches], language: Language) -> Iterator[list[Token]]:
    """Yield the phrase with one unknown word corrected, for each that may be a typo, and then with all of them."""
    found = {
        place: words[:_MOST_CANDIDATES]
        for place, token in enumerate(tokens)
        if token.kind == WORD
        and not matches[place]
        and len(token.text) >= SHORTEST
        and not find_languages(token.text, language)
        and (words := find_candidates(token.text, language))
    }
    found = dict(list(found.items())[:_MOST_WORDS])
    changes = [{place: word} for place, words in found.items() for word in words]
    if len(found) > 1:
        changes.append({place: words[0] for place, words in found.items()})
    for change in changes:
        yield [each._replace(text=change.get(place, each.text)) for place, each in enumerate(tokens)]


def find_candidates(word: str, language: Language) -> list[str]:
    """Return the words of the lexicon one edit away: a letter missing, added or changed, or two neighbours swapped."""
    index = _build_index(language.code)
    result = {one for part in _drop_letters(word) for one in index.get(part, ()) if is_slip(word, one)}
    return sorted(result, key=lambda one: (one[0] != word[0], -len(one), one))


def is_slip(typed: str, meant: str) -> bool:
    """Return whether two words differ by one letter, or by two swapped neighbours."""
    while typed and typed[0] == meant[:1]:
        typed, meant = typed[1:], meant[1:]
    is_swapped = typed[:2] == meant[1::-1] and typed[2:] == meant[2:]
    return typed != meant and (is_swapped or typed[1:] in {meant, meant[1:]} or typed == meant[1:])


def is_close(typed: str, meant: str) -> bool:
    """Return whether a word is probably another one with a typing error."""
    return max(len(typed), len(meant)) > SHORTEST and typed[0] == meant[0] and typed != f"{meant}s"


def is_misspelt(word: str, language: Language) -> bool:
    """Return whether a word outside the lexicon is probably one of it with a typing error."""
    if len(word) < SHORTEST or word in language.innocent:
        return False
    return any(is_close(word, meant) for meant in find_candidates(word, language))


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
