"""The lexicon: a phrase is split into tokens, and their words have classes, also several words together.

Tokens are words, numbers, ordinals, clock times, dates, quoted text and marks. A `Language` is only a table. The
grammar uses classes alone, so a new language needs only its words and a few settings of notation. A `Cursor` is a
position in a phrase, from which the grammar consumes words by class.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cloudsched.language.nodes import Span

WORD, NUMBER, ORDINAL, CLOCK, DATE = "word", "number", "ordinal", "clock", "date"
PAIR, QUOTE, PATH, MARK, CLASS = "pair", "quote", "path", "mark", "class"
"""The kinds of tokens. A class is a word that nobody typed."""
_PATTERN = re.compile(
    r"""
      (?P<quote>"[^"]+"|“[^”]+”|„[^“]+“|«[^»]+»|`[^`]+`)
    | (?P<date>\d{4}-\d{1,2}-\d{1,2})(?![\d/-])T?
    | (?P<clock>\d{1,2}:\d{2}(?::\d{2})?(?!\d|:\d)|\d{1,2}h\d{2}(?![\dhm]))Z?
    | (?P<ordinal>\d{1,4}(?:st|nd|rd|th))(?![^\W\d])
    | (?P<pair>\d{1,4}[/.]\d{1,4}(?:[/.]\d{2,4})?|\d{1,2}-\d{1,2}(?:-\d{2,4})?)(?![\d/]|[.:-]\d)
    | (?P<path>[^\W\d]\w*(?:/[^\W\d][\w+-]*)+|(?:UTC|GMT)[+-]\d{1,2}(?::\d{2})?)
    | (?P<half>(?<![^\W\d])[ap]\.\s?m\b\.?)
    | (?P<number>\d+)
    | (?P<word>(?:(?<!\S)['’][st]\b)|[^\W\d_]+(?:['’][^\W\d_]+)*'?)
    | (?P<mark>\S)
    """,  # noqa: RUF001 -- people type the typographic apostrophe
    re.VERBOSE | re.IGNORECASE,
)


_DECIMAL = re.compile(r"\d\.\d")


class Token(NamedTuple):
    """One token.

    Attributes:
        text: The typed text, in lower case and with plain apostrophes.
        value: The numbers of a number, an ordinal, a clock time, a date or a pair such as ``3/4``.
        glued: It follows the token before without a space, also behind a dot between digits.
    """

    kind: str
    text: str
    start: int
    end: int
    value: tuple[int, ...] = ()
    glued: bool = False


def tokenise(text: str, language: Language) -> list[Token]:
    """Return the tokens of a phrase."""
    tokens: list[Token] = []
    for found in _PATTERN.finditer(text):
        is_glued = bool(tokens) and (tokens[-1].end == found.start() or bool(_DECIMAL.match(text, found.start() - 2)))
        token = _make_token(found, language, is_glued=is_glued)
        if token.kind == PATH and language.entries.keys() >= {*token.text.lower().split("/")}:
            tokens += _split_path(token)
        elif token.kind == WORD and token.text in language.compounds:
            tokens += _split_compound(token, language.compounds[token.text])
        elif found[0] != ".":
            tokens.append(token)
    return _join_tokens(tokens, language)


def _split_path(path: Token) -> list[Token]:
    """Return the words and the slashes of a list such as ``mon/wed/fri``, which is no zone."""
    return [
        Token(
            MARK if part[0] == "/" else WORD,
            part[0].lower(),
            path.start + part.start(),
            path.start + part.end(),
            glued=part.start() > 0,
        )
        for part in re.finditer(r"/|[^/]+", path.text)
    ]


def _split_compound(token: Token, first: int) -> list[Token]:
    """Return the two words that are written as one: ``Freitagabend``."""
    middle = token.start + first
    is_plural = token.text.endswith("s")  # "freitagabends" is each Friday
    return [
        token._replace(text=token.text[:first] + ("s" if is_plural else ""), end=middle),
        token._replace(text=token.text[first:], start=middle, glued=False),
    ]


def _make_token(found: re.Match[str], language: Language, *, is_glued: bool) -> Token:
    kind, end = str(found.lastgroup), found.end()
    typed = found[kind]
    text = typed.lower().replace("’", "'")  # noqa: RUF001 -- see above
    value: tuple[int, ...] = ()
    if kind == QUOTE:
        text, is_glued = typed[1:-1], False
    elif kind == PATH:
        text = typed
    elif kind == "half":
        kind, text = WORD, text[0] + "m"
    elif kind == WORD:
        text = text.removesuffix("'")
    elif kind != MARK:
        value = tuple(int(number) for number in re.findall(r"\d+", text) if len(number) < 10)
        if not value:
            kind = WORD
        elif kind == NUMBER and language.ordinal_dot and re.match(r"\.(?=\s*[^\s\d])", found.string[end:]):
            kind, end = ORDINAL, end + 1
    return Token(kind, text, found.start(), end, value, is_glued)


def _join_tokens(tokens: list[Token], language: Language) -> list[Token]:
    """Join letters and digits that belong together: ``A4`` is one token, ``Feb13`` and ``1h30m`` are several."""
    joined: list[Token] = []
    for token in tokens:
        kind = None
        if joined and token.glued:
            before = joined[-1]
            if before.kind == NUMBER and token.text in language.ordinal_endings:
                kind = ORDINAL
            elif before.kind == WORD and token.value and token.kind != DATE:
                is_split = language.splits(before.text) or (before.glued and joined[-2].kind == NUMBER)
                kind = None if is_split else WORD
        if kind is None:
            joined.append(token)
        else:
            joined[-1] = before._replace(kind=kind, text=before.text + token.text, end=token.end)
    return joined


class Cursor:
    """Reads a phrase from left to right. Every rule of the grammar takes words from it, or leaves it where it was."""

    __slots__ = ("at", "bare", "kinds", "language", "matches", "memo", "tokens")

    def __init__(self, tokens: Sequence[Token], matches: Sequence[Matches], language: Language) -> None:
        self.tokens = tokens
        self.matches = (*matches, Matches())  # nothing is at the end
        self.language = language
        self.at = 0
        self.bare = False  # a plain number is an hour, as in "make it 10"
        self.memo: list[dict[Any, Any]] = [{} for _ in self.matches]  # what rules returned, by place and rule
        self.kinds = list(map(frozenset, self.matches))  # the classes of `matches`

    @property
    def ended(self) -> bool:
        """Return whether all tokens are consumed."""
        return self.at >= len(self.tokens)

    @property
    def token(self) -> Token | None:
        """Return the current token. None at the end."""
        return None if self.ended else self.tokens[self.at]

    def sees(self, *kinds: str) -> bool:
        """Return whether a word of one of the classes begins at the current token."""
        return not self.kinds[self.at].isdisjoint(kinds)

    def take(self, *kinds: str) -> Match | None:
        """Consume the longest match of the first class that begins here. Return None if there is no match."""
        here = self.matches[self.at]
        for kind in kinds:
            match = here.get(kind)
            if match is not None:
                self.at = match.end
                return match
        return None

    def skip(self, *kinds: str) -> bool:
        """Consume words of these classes as long as there are any. Return whether there were any."""
        start = self.at
        while self.take(*kinds) is not None:
            pass
        return self.at > start

    def span(self, start: int) -> Span:
        """Return the span in the phrase of the tokens from ``start`` to the cursor."""
        if start >= len(self.tokens):
            return (self.tokens[-1].end, self.tokens[-1].end) if self.tokens else (0, 0)
        return self.tokens[start].start, self.tokens[max(self.at - 1, start)].end


PLAIN = frozenset(
    """
    counted-weekday consecutive hedge greeting yearly-event generic change-verb cancel-verb stop-reminding task-noun
    own onto wish question-word occasion idiom
    """.split()  # noqa: SIM905 -- easier to read
)
"""Classes of words for the subject of a title, in which they are as good as words outside the lexicon."""
# Classes whose words may also be part of a title. Words of all other classes belong to a schedule.
HARMLESS = PLAIN | frozenset(
    """
    article a on on-day in of at for to and or with then by from after before per past up about than it done
    time times polite intro verb-intro intro-noun closer outro
    only number tens thousand ordinal fraction half halfday-short
    the-next clock-minute skip-end one comma dash colon open close stop quote day-word unit-short zone-time also hence
    make instead add-more skip no-more postpone shift same-time filler onward for-after added if-day if-day-end
    on-or days-of moved moved-to not-on pair slash the numbered that-one part-of parity ish halves
    hour-mark ahead and-half inclusive condition hour-point in-total zone-of remind relocate
    """.split()  # noqa: SIM905 -- easier to read
)
_MARKS = {",": "comma", ";": "comma", "-": "dash", "–": "dash", "—": "dash", ":": "colon", "&": "and", "@": "at"}  # noqa: RUF001
_MARKS |= {"(": "open", ")": "close", "+": "and", "…": "comma", "!": "stop", "?": "stop", "'": "stop", "/": "slash"}
_TOKENS = {CLOCK: "clock", DATE: "date", PAIR: "pair", QUOTE: "quote", PATH: "path"}
_TOKENS |= {NUMBER: "number", ORDINAL: "ordinal"}


class Match(NamedTuple):
    """One way to classify the words at a token: the token after them, and their value."""

    end: int
    value: int


Matches = dict[str, Match]


def number_words(texts: str, first: int = 0) -> dict[int, str]:
    """Return the words of consecutive values, of which spaces separate the values: ``"montag|mo dienstag|di"``."""
    return dict(enumerate(texts.split(), first))


@dataclass(frozen=True)
class Language:
    """The words of one language.

    Attributes:
        words: For each class its texts, separated by ``|``, or those of each value. Without values, it is 1.
        month_first: True if the month comes first in ``3/4``. None if usage differs.
        endings: The endings that a mark behind a word stands for: ``letzte*``. Without a mark, it has none.
        ordinal_dot: True if ``24.`` is an ordinal.
        ordinal_endings: The endings that make a number an ordinal, besides those of English: ``15e``.
        clock24: True if the word for "o'clock" uses the 24-hour clock and may be followed by minutes: ``9 Uhr 30``.
        either_half: True if an hour with that word may be in either half of the day nevertheless: ``3 uur``.
        part_adverbs: True if "parts" are adverbs, which say how often only if no day is named: "abends".
        verbs_last: True if a verb may end a sentence: "Oma jeden Montag anrufen".
        compounds: Words of two, and the length of the first: ``freitagabend``.
        requests: The words of what people ask of their tasks, by class, as in `words`. Readers of schedules see none.
        innocent: Words that are not about time in this language, though they are in another.
        past: What titles in the past tense match: "paid the rent", "Miete bezahlt".
        day_endings: The endings of words for days. An unknown word with one is no part of a title: "on matchday".
    """

    code: str
    name: str
    words: Mapping[str, str | Mapping[int, str]]
    requests: Mapping[str, str | Mapping[int, str]] = field(default_factory=dict)
    month_first: bool | None = None
    endings: Mapping[str, str] = field(default_factory=dict)
    ordinal_dot: bool = False
    ordinal_endings: tuple[str, ...] = ()
    clock24: bool = False
    either_half: bool = False
    part_adverbs: bool = False
    verbs_last: bool = False
    compounds: Mapping[str, int] = field(default_factory=dict)
    innocent: frozenset[str] = frozenset()
    past: str = "$^"
    day_endings: tuple[str, ...] = ()

    @cached_property
    def entries(self) -> dict[str, list[tuple[tuple[str, ...], str, int]]]:
        """Return all entries by their first word, longest first."""
        result: dict[str, list[tuple[tuple[str, ...], str, int]]] = {}
        for kind in self.words:
            for value, texts in self.list_words(kind).items():
                for text in texts.split("|"):
                    stem = text.rstrip("*~").replace("-", " ").replace(",", " ,")
                    for ending in self.endings.get(text[-1], "").split("|"):
                        for spelling in _spell(stem + ending):
                            words = tuple(spelling.split())
                            result.setdefault(words[0], []).append((words, kind, value))
        for entries in result.values():
            entries.sort(key=lambda entry: -len(entry[0]))
        return result

    @cached_property
    def with_requests(self) -> Language:
        """Return the language with the words of requests among the others."""
        return replace(self, words={**self.words, **self.requests})

    def list_words(self, kind: str) -> Mapping[int, str]:
        """Return the words of a class by their values."""
        words = self.words.get(kind, {})
        return {1: words} if isinstance(words, str) else words

    def splits(self, word: str) -> bool:
        """Return whether digits may follow a word without a space: a month's name."""
        return any(kind == "month" and len(words) == 1 for words, kind, _ in self.entries.get(word, ()))


_PLAIN_LETTERS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


def _spell(text: str) -> set[str]:
    """Return a text as it is written, and without the letters that many keyboards do not have: "fuer" for "für"."""
    return {text, text.replace("ß", "ss"), text.translate(_PLAIN_LETTERS)}


def classify(tokens: Sequence[Token], language: Language) -> list[Matches]:
    """Return the longest match of each class for each token."""
    return [_match_at(tokens, place, language) for place in range(len(tokens))]


def _match_at(tokens: Sequence[Token], place: int, language: Language) -> Matches:
    token = tokens[place]
    kind = (
        token.text if token.kind == CLASS else _MARKS.get(token.text) if token.kind == MARK else _TOKENS.get(token.kind)
    )
    result: Matches = {kind: Match(place + 1, token.value[0] if token.value else 0)} if kind else {}
    if token.kind not in {WORD, NUMBER, ORDINAL}:
        return result
    if token.text.endswith("'s") and token.text not in language.entries and token.text[:-2] in language.entries:
        return {"possessive": Match(place + 1, 0)}  # "Monday's meeting"
    following = tokens[place + 1].text if place + 1 < len(tokens) else ""
    for words, kind, value in language.entries.get(token.text, ()):
        if len(words) > 1 and following not in {words[1], "-"}:
            continue
        end = _find_end(tokens, place, words) if len(words) > 1 else place + 1
        if end and (kind not in result or result[kind].end < end):
            result[kind] = Match(end, value)
    return result


def _find_end(tokens: Sequence[Token], place: int, words: Iterable[str]) -> int:
    """Return the token after these words if they begin here, with or without hyphens between them, or else 0."""
    for number, word in enumerate(words):
        if number and place < len(tokens) and tokens[place].text == "-":
            place += 1
        if place >= len(tokens) or tokens[place].text != word:
            return 0
        place += 1
    return place


def is_plain(matches: Matches) -> bool:
    """Return whether a word is not about time, as far as the lexicon knows."""
    return matches.keys() <= PLAIN
