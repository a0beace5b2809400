"""Words with a typing error: those of the lexicon that may be meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.language.languages import find_languages
from cloudsched.language.lexicon import PLAIN, WORD, Language, Matches, Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SHORTEST = 4
_UNLIKELY = PLAIN | {"half-known", "modifier", "vague", "some", "holiday", "condition", "no-title"}
"""The classes of words that make no schedule, so that no other word was probably meant as one of them."""
_MOST_WORDS = 4
_MOST_CANDIDATES = 3


def find_corrections(tokens: Sequence[Token], matches: Sequence[Matches], language: Language) -> Iterator[list[Token]]:
    """Yield the phrase with one unknown word corrected, for each that may be a typo, and then with all of them."""
    unknown = [
        place
        for place, token in enumerate(tokens)
        if token.kind == WORD
        and not matches[place]
        and len(token.text) >= _SHORTEST
        and not find_languages(token.text, language)
        and find_candidates(token.text, language)
    ]
    for place in unknown[:_MOST_WORDS]:
        for word in find_candidates(tokens[place].text, language)[:_MOST_CANDIDATES]:
            yield [*tokens[:place], tokens[place]._replace(text=word), *tokens[place + 1 :]]
    best = {place: find_candidates(tokens[place].text, language)[:1] for place in unknown[:_MOST_WORDS]}
    if sum(map(bool, best.values())) > 1:
        yield [each._replace(text=best[at][0]) if best.get(at) else each for at, each in enumerate(tokens)]


def find_candidates(word: str, language: Language) -> list[str]:
    """Return the words of the lexicon one edit away: a letter missing, added or changed, or two neighbours swapped."""
    index = _build_index(language.code, language)
    result = set(index.get(word, ()))
    for place in range(len(word)):
        result |= index.get(word[:place] + word[place + 1 :], set())
    return sorted((one for one in result if is_slip(word, one)), key=lambda one: (one[0] != word[0], -len(one), one))


def is_slip(typed: str, meant: str) -> bool:
    """Return whether two words differ by one letter, or by two swapped neighbours."""
    if typed == meant or abs(len(typed) - len(meant)) > 1:
        return False
    at = next(
        (place for place, (a, b) in enumerate(zip(typed, meant, strict=False)) if a != b), min(len(typed), len(meant))
    )
    if len(typed) == len(meant):
        exchanged = typed[at : at + 2] == meant[at : at + 2][::-1] and typed[at + 2 :] == meant[at + 2 :]
        return exchanged or typed[at + 1 :] == meant[at + 1 :]
    longer, shorter = (typed, meant) if len(typed) > len(meant) else (meant, typed)
    return longer[at + 1 :] == shorter[at:]


def is_sure(typed: str, meant: str) -> bool:
    """Return whether a word is too long, and too much like another, to have been meant as typed."""
    return len(typed) > _SHORTEST and is_close(typed, meant)


def is_close(typed: str, meant: str) -> bool:
    """Return whether a word is probably another one with a typing error."""
    return max(len(typed), len(meant)) > _SHORTEST and typed[0] == meant[0] and typed != f"{meant}s"


def is_misspelt(word: str, language: Language) -> bool:
    """Return whether a word outside the lexicon is probably one of it with a typing error."""
    if len(word) < _SHORTEST or word in language.innocent:
        return False
    return any(is_close(word, meant) for meant in find_candidates(word, language))


_INDEXES: dict[str, dict[str, set[str]]] = {}


def _build_index(code: str, language: Language) -> dict[str, set[str]]:
    """Return an index from each spelling, with at most one letter dropped, to the lexicon's words."""
    if code not in _INDEXES:
        index: dict[str, set[str]] = {}
        for word, entries in language.entries.items():
            if all(kind in _UNLIKELY for _, kind, _ in entries):
                continue
            if len(word) >= _SHORTEST and word.isalpha():
                for text in {word, *(word[:place] + word[place + 1 :] for place in range(len(word)))}:
                    index.setdefault(text, set()).add(word)
        _INDEXES[code] = index
    return _INDEXES[code]
