"""A position in the tokens of a phrase, from which rules consume words by class."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.language.lexicon import Language, Match, Matches
    from cloudsched.language.nodes import Span
    from cloudsched.language.tokens import Token

T = TypeVar("T")


class Cursor:
    """Reads a phrase from left to right; every rule of the grammar takes words from it, or leaves it where it was."""

    __slots__ = ("at", "bare", "language", "matches", "tokens")

    def __init__(self, tokens: Sequence[Token], matches: Sequence[Matches], language: Language) -> None:
        self.tokens, self.matches, self.language = tokens, matches, language
        self.at = 0
        self.bare = False  # a plain number is an hour, as in "make it 10"

    @property
    def ended(self) -> bool:
        """Return whether all tokens are consumed."""
        return self.at >= len(self.tokens)

    @property
    def token(self) -> Token | None:
        """The current token; None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def sees(self, *kinds: str, ahead: int = 0) -> bool:
        """Return whether a word of one of the classes begins at the current token, or ``ahead`` tokens later."""
        at = self.at + ahead
        if at >= len(self.matches):
            return False
        here = self.matches[at]
        return any(kind in here for kind in kinds)

    def take(self, *kinds: str) -> Match | None:
        """Consume the longest match of the first class that begins here; None if there is no match."""
        if self.at >= len(self.matches):
            return None
        here = self.matches[self.at]
        for kind in kinds:
            match = here.get(kind)
            if match is not None:
                self.at = match.end
                return match
        return None

    def skip(self, *kinds: str) -> bool:
        """Consume words of these classes as long as there are any; return whether there were any."""
        start = self.at
        while self.take(*kinds) is not None:
            pass
        return self.at > start

    def attempt(self, rule: Callable[[Cursor], T | None]) -> T | None:
        """Apply a rule; go back to the start if it fails."""
        start = self.at
        result = rule(self)
        if result is None:
            self.at = start
        return result

    def span(self, start: int) -> Span:
        """Return the span in the phrase of the tokens from ``start`` to the cursor."""
        if start >= len(self.tokens):
            return (self.tokens[-1].end, self.tokens[-1].end) if self.tokens else (0, 0)
        return self.tokens[start].start, self.tokens[max(self.at - 1, start)].end
