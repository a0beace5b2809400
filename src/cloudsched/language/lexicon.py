"""The lexicon: a phrase is split into tokens, and their words have classes, also several words together.

Tokens are words, numbers, ordinals, clock times, dates, quoted text and marks. A `Language` is only a table. The
grammar uses classes alone, so a new language needs only its words and a few settings of notation. A `Cursor` is a
position in a phrase, from which the grammar consumes words by class.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cloudsched.language.nodes import Span

WORD, NUMBER, ORDINAL, CLOCK, DATE, PAIR, QUOTE, PATH, MARK, CLASS = (
    *("word", "number", "ordinal", "clock", "date", "pair", "quote", "path", "mark", "class"),
)
"""The kinds of tokens. A class is a word that nobody typed."""
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "`": "`"}

_PATTERN = re.compile(
    r"""
      (?P<date>\d{4}-\d{1,2}-\d{1,2})(?![\d/-])T?
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
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        closing = _QUOTES.get(text[at])
        end = text.find(closing, at + 1) if closing else -1
        if end > at + 1:
            tokens.append(Token(QUOTE, text[at + 1 : end], at, end + 1))
            at = end + 1
            continue
        result = _PATTERN.match(text, at)
        if result is None:  # a lone combining character and the like
            at += 1
            continue
        glued = bool(tokens) and (tokens[-1].end == at or _DECIMAL.match(text, at - 2) is not None)
        token = _make_token(result, text, glued=glued, ordinal_dot=language.ordinal_dot)
        at = token.end
        if token.kind == PATH and _is_list(token.text, language):
            tokens += _split_path(token)
        elif (first := language.compounds.get(token.text)) is not None:
            tokens += _split_compound(token, first)
        elif token.text != ".":
            tokens.append(token)
    return _join_tokens(tokens, language)


def _is_list(path: str, language: Language) -> bool:
    """Return whether words between slashes are words of the lexicon, as in ``mon/wed/fri``, and not a zone."""
    return all(part in language.entries for part in path.lower().split("/"))


def _split_path(path: Token) -> list[Token]:
    tokens: list[Token] = []
    at = path.start
    for part in path.text.split("/"):
        if tokens:
            tokens.append(Token(MARK, "/", at, at + 1, (), True))
            at += 1
        tokens.append(Token(WORD, part.lower(), at, at + len(part), (), bool(tokens)))
        at += len(part)
    return tokens


def _split_compound(token: Token, first: int) -> list[Token]:
    """Return the two words that are written as one: ``Freitagabend``."""
    middle = token.start + first
    is_plural = token.text.endswith("s")  # "freitagabends" is each Friday
    return [
        token._replace(text=token.text[:first] + ("s" if is_plural else ""), end=middle),
        token._replace(text=token.text[first:], start=middle, glued=False),
    ]


def _make_token(result: re.Match[str], text: str, *, glued: bool, ordinal_dot: bool) -> Token:
    kind = str(result.lastgroup)
    typed = result.group(kind)
    plain = typed.lower().replace("’", "'")  # noqa: RUF001 -- see above
    start, end = result.start(), result.end()
    if kind == "half":
        return Token(WORD, plain[0] + "m", start, end, (), glued)
    if kind == WORD:
        return Token(WORD, plain.removesuffix("'") if plain != "'" else plain, start, end, (), glued)
    if kind == PATH:
        return Token(PATH, typed, start, end, (), glued)
    if kind == MARK:
        return Token(MARK, plain, start, end, (), glued)
    value = tuple(int(number) for number in re.findall(r"\d+", plain) if len(number) < 10)
    if not value:
        return Token(WORD, plain, start, end, (), glued)
    if kind == NUMBER and ordinal_dot and re.match(r"\.(?=\s*[^\s\d])", text[end:]):
        return Token(ORDINAL, plain, start, end + 1, value, glued)
    return Token(kind, plain, start, end, value, glued)


def _join_tokens(tokens: list[Token], language: Language) -> list[Token]:
    """Join letters and digits that belong together: ``A4`` is one token, ``Feb13`` and ``1h30m`` are several."""
    joined: list[Token] = []
    for token in tokens:
        before = joined[-1] if joined else None
        is_unit = before is not None and before.glued and len(joined) > 1 and joined[-2].kind == NUMBER
        letters_then_digits = (
            before is not None and token.glued and before.kind == WORD and token.kind in {NUMBER, CLOCK, ORDINAL, PAIR}
        )
        is_ordinal = token.glued and token.text in language.ordinal_endings
        if is_ordinal and before is not None and before.kind == NUMBER:
            joined[-1] = before._replace(kind=ORDINAL, text=before.text + token.text, end=token.end)
        elif letters_then_digits and before is not None and not is_unit and not language.splits(before.text):
            joined[-1] = Token(WORD, before.text + token.text, before.start, token.end, (), before.glued)
        else:
            joined.append(token)
    return joined


T = TypeVar("T")


class Cursor:
    """Reads a phrase from left to right. Every rule of the grammar takes words from it, or leaves it where it was."""

    __slots__ = ("at", "bare", "kinds", "language", "matches", "memo", "tokens")

    def __init__(self, tokens: Sequence[Token], matches: Sequence[Matches], language: Language) -> None:
        self.tokens: Sequence[Token] = tokens
        self.matches: Sequence[Matches] = (*matches, {})  # nothing is at the end
        self.language: Language = language
        self.at: int = 0
        self.bare: bool = False  # a plain number is an hour, as in "make it 10"
        self.memo: list[dict[Any, Any]] = [{} for _ in self.matches]  # what rules returned, by place and rule
        self.kinds: list[frozenset[str]] = list(map(frozenset, self.matches))  # the classes of `matches`

    @property
    def ended(self) -> bool:
        """Return whether all tokens are consumed."""
        return self.at >= len(self.tokens)

    @property
    def token(self) -> Token | None:
        """Return the current token. None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def sees(self, *kinds: str, ahead: int = 0) -> bool:
        """Return whether a word of one of the classes begins at the current token, or ``ahead`` tokens later."""
        at = self.at + ahead
        if at >= len(self.matches):
            return False
        here = self.matches[at]
        return any(kind in here for kind in kinds)

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

    def attempt(self, rule: Callable[[Cursor], T | None]) -> T | None:
        """Apply a rule. Go back to the start if it fails."""
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


PLAIN = frozenset(
    {
        "counted-weekday",
        "consecutive",
        "hedge",
        "greeting",
        "yearly-event",
        "generic",
        "change-verb",
        "cancel-verb",
        "stop-reminding",
        "task-noun",
        "own",
        "onto",
        "wish",
    }
    | {"question-word", "occasion", "idiom"}
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
        ordinal_dot: True if ``24.`` is an ordinal.
        ordinal_endings: The endings that make a number an ordinal, besides those of English: ``15e``.
        clock24: True if the word for "o'clock" uses the 24-hour clock and may be followed by minutes: ``9 Uhr 30``.
        either_half: True if an hour with that word may be in either half of the day nevertheless: ``3 uur``.
        part_adverbs: True if "parts" are adverbs, which say how often only if no day is named: "abends".
        verbs_last: True if a verb may end a sentence: "Oma jeden Montag anrufen".
        compounds: Words of two, and the length of the first: ``freitagabend``.
        glued_numbers: Numbers written as one word that the other entries do not compose.
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
    ordinal_dot: bool = False
    ordinal_endings: tuple[str, ...] = ()
    clock24: bool = False
    either_half: bool = False
    part_adverbs: bool = False
    verbs_last: bool = False
    compounds: Mapping[str, int] = field(default_factory=dict)
    glued_numbers: Mapping[str, int] = field(default_factory=dict)
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
                    plain = text.replace("-", " ").replace(",", " ,")
                    for spelling in _spell(plain):
                        words = tuple(spelling.split())
                        result.setdefault(words[0], []).append((words, kind, value))
        for word, number in self.glued_numbers.items():
            for spelling in _spell(word):
                result.setdefault(spelling, []).append(((spelling,), "number", number))
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
    if token.kind in _TOKENS:
        return {_TOKENS[token.kind]: Match(place + 1, 0)}
    if token.kind == CLASS:
        return {token.text: Match(place + 1, token.value[0])}
    if token.kind == ORDINAL and token.text not in language.entries:
        return {"ordinal": Match(place + 1, token.value[0])}
    if token.kind == MARK:
        kind = _MARKS.get(token.text)
        return {kind: Match(place + 1, 0)} if kind else {}
    kind = {ORDINAL: "ordinal", NUMBER: "number"}.get(token.kind)
    result: Matches = {kind: Match(place + 1, token.value[0])} if kind else {}
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
