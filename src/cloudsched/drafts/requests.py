"""Find what a text asks of stored tasks, before its schedule is read: to change, skip, pause or cancel one, or a list.

A request has a verb, first or last, or a mark such as "instead of", and names a task. Nothing here reads a schedule: a
request hands the words that are left to the grammar of changes, which has to understand each.
"""

from __future__ import annotations

import re
from enum import IntEnum
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.drafts.deliveries import QUOTED, list_languages, read_requests
from cloudsched.drafts.phrases import content_words
from cloudsched.drafts.situation import Lead, find_meant, find_named, list_words
from cloudsched.language.changes import find_open_time
from cloudsched.language.english import ENGLISH
from cloudsched.language.languages import LANGUAGES
from cloudsched.language.lexicon import HARMLESS, PLAIN, Cursor, classify, tokenise
from cloudsched.language.reader import MAX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cloudsched.domain.documents.delivery_channels import DeliveryChannel
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.responses.api_responses import DraftOperation
    from cloudsched.language.lexicon import Language, Token
    from cloudsched.language.nodes import Span


class Intent(IntEnum):
    """What a request asks for. The numbers are the values of the rows of `Language.requests`."""

    CHANGE = 1
    SKIP = 2
    ADD = 3
    DROP = 4
    POSTPONE = 5
    ADVANCE = 6
    PAUSE = 7
    RESUME = 8
    CANCEL = 9
    STOP = 10
    DELETE = 11
    TRIGGER = 12
    MOVE = 13
    """Change when it runs, to a day or a time."""
    RENAME = 14
    RESTATE = 15
    """No verb asks for it: the words besides the task say when it runs."""


OPERATIONS: Final[dict[Intent, DraftOperation]] = {
    Intent.PAUSE: "pause",
    Intent.RESUME: "resume",
    Intent.CANCEL: "cancel",
    Intent.STOP: "cancel",
    Intent.DELETE: "delete",
    Intent.TRIGGER: "trigger",
}
"""The operations on a whole task, by what asks for them."""


_SKIP, _DROP, _ADD, MAKE, _MOVE = (("skip", 1), ("no-more", 1), ("add-more", 1), ("make", 2), ("relocate", 1))
_ONE, _ONCE, _OF, _ONTO = (("one", 1), ("twice", 1), ("of", 1), ("onto", 1))
_NEXT: Final = (_MOVE, _ONE, _ONTO)
_FIRST: Final[dict[Intent | None, tuple[str, int]]] = {
    **dict.fromkeys((Intent.SKIP, Intent.CANCEL, Intent.PAUSE), _SKIP),
    **dict.fromkeys((Intent.DROP, Intent.DELETE), _DROP),
    Intent.ADD: _ADD,
}
_SHIFTS: Final = {Intent.POSTPONE, Intent.ADVANCE}
_MOVES: Final = {Intent.CHANGE, Intent.MOVE, *_SHIFTS}


class TaskRequest(NamedTuple):
    """What a text asks of a stored task.

    Attributes:
        tasks: The tasks that may be meant.
        leads: What the verb may ask for in words of the grammar. The first one that is understood counts.
        words: The words besides the verb and the task, which say when it runs.
        language: The language of the words.
        is_about_tasks: Nothing else can be meant: the words besides the verb and the task are of a schedule, or there
            are none.
        is_whole: There are no words but the verb and the task, so that the task as a whole is meant.
        sends: The verb sends the task's results.
        field: The field that changes instead, as the user calls it.
        value: Its new value.
        said: The whole text, which has the fields of a payload.
        end: The number of its characters whose meaning is in the words.
        channels: The ways of delivery that it names.
    """

    intent: Intent
    tasks: Sequence[Task]
    leads: Sequence[Lead] = ()
    words: str = ""
    language: str | None = None
    is_about_tasks: bool = False
    is_whole: bool = False
    sends: bool = False
    field: str = ""
    value: str = ""
    said: str = ""
    end: int = 0
    channels: tuple[DeliveryChannel, ...] = ()


def may_change(text: str, title: str, *, is_one_time: bool) -> bool:
    """Return whether a text that names no stored task may still ask something of one, and so makes none unasked.

    A verb such as "skip" asks it if the time is a single one, and "move" does if a time follows: "move yoga to Friday".
    """
    for language in LANGUAGES.values():
        verb, said = _Said(text, language).find_words(set()).verb, _Said(title, language)
        if is_one_time and verb in _SINGLE:
            return True
        ends = {kind for each in said.matches for kind, match in each.items() if match.end == len(said.tokens)}
        if (verb is Intent.MOVE and "joint" in ends) or _MARKS & ends:
            return True
    return False


def find_requests(text: str, tasks: Sequence[Task], *, sends: bool = False) -> Iterator[TaskRequest]:
    """Yield what a text may ask of a stored task, in each language, the most likely first.

    If ways of delivery are named beside it, it `sends`, so that verbs such as "send" count.
    """
    for language in list_languages(text) if tasks and len(text) <= MAX_LENGTH else ():
        for is_sent in (True, False) if sends else (False,):
            yield from _Said(text, language, sends=is_sent).find(tasks)


def find_edits(text: str, tasks: Sequence[Task]) -> Iterator[TaskRequest]:
    """Yield the changes of fields that a text may ask for, the most specific one first: "rename it to Numbers"."""
    for language in LANGUAGES.values() if tasks else ():
        yield from _Said(text, language).find_edits(tasks)


def split_requests(text: str) -> tuple[str, str] | None:
    """Split "move it to Tuesday and rename it to Numbers" before its last request. None if there is one alone."""
    splits = list[tuple[int, int]]()
    for c in read_requests(text):
        for at in range(1, len(c.tokens)):
            c.at = at
            end = c.tokens[at - 1].end
            has_break = "\n" in text[end : c.tokens[at].start]
            is_joined = c.skip("comma", "and", "then") or has_break
            begin = c.at
            c.skip("padding", "mark")
            has_verb = c.take("verb", "send") is not None
            if is_joined and has_verb and (has_break or c.sees("pronoun", "its")):
                splits.append((end, c.tokens[begin].start))
    if not 0 < len(splits) <= _MOST_JOINED:
        return None
    end, begin = max(splits)
    return text[:end], text[begin:]


def may_name_time(text: str) -> bool:
    """Return whether a word of a text may name a time or a frequency, understood or not."""
    tokens = tokenise(text, ENGLISH)
    is_open = find_open_time(tokens, classify(tokens, ENGLISH)) is not None
    return is_open or any(_Said(text, each).list_times() for each in LANGUAGES.values())


def find_list(text: str, load_tasks: Callable[[], Sequence[Task]]) -> tuple[Sequence[Task], tuple[str, ...]] | None:
    """Return the tasks and the runs of words of time of a text that asks which tasks there are, or when one runs.

    "What is on tomorrow?" It asks for all tasks if it names none.
    """
    for language in list_languages(text[:MAX_LENGTH]):
        said = _Said(text[:MAX_LENGTH], language)
        said.skip("padding", "comma")
        named: Sequence[Task] = ()
        if said.sees("question-word"):
            named = list(chain(*said.find_titles(load_tasks()).values()))
            # "What is on Monday" has only words of a question and of a time.
            only_asks = all({"question-word", "copula"} & said.kinds[at] for at in said.plain)
            if not (named or (_NOUNS | {"agenda"}) & said.said or text.rstrip().endswith("?") or only_asks):
                return None
        elif said.take("list-verb") is not None:
            said.skip("own", "article", "each", "agenda")
            if not said.sees(*_NOUNS):
                return None
        else:
            continue
        return named or load_tasks(), said.list_times()
    return None


class _Asked(NamedTuple):
    """What the words outside a name ask for, and the tokens that say so, or only are polite.

    Attributes:
        verb: What a verb asks for, without a mark such as "instead of".
        has_marks: Beside the verb, there are marks such as "not", which may turn it round.
    """

    intent: Intent | None
    used: set[int]
    verb: Intent | None
    has_marks: bool


_SINGLE: Final = {Intent.SKIP, Intent.POSTPONE, Intent.ADVANCE, Intent.PAUSE, Intent.RESUME}
"""What is hardly work to do, as "cancel the gym membership on 1 October" may be."""
_MARKS: Final = frozenset({"mark", "lasting", "once"})
_SMALL: Final = frozenset({"stop", "padding", "lasting", "once"})
_TARGET: Final = frozenset({"own", "article"})
_BEFORE: Final = _TARGET | {"copula", "link", "field"}
_NOUNS: Final = frozenset({"task-noun", "noun"})
_DAYS: Final = frozenset({"weekday", "relday", "tonight", "month", "unit"})
_POSSESSION: Final = re.compile("'?s$")
_RIMS: Final = " .,;:-–—"  # noqa: RUF001 - what people type
_MOST_FIELD_WORDS: Final = 4
_MOST_BECOMES: Final = 6
"""The number of words such as "to" at which the name of a task may end."""
_MOST_JOINED: Final = 10
"""The number of requests that a text may join."""


class _Said(Cursor):
    """A text with the classes of its words, and which of them are accounted for."""

    def __init__(self, text: str, language: Language, *, sends: bool = False) -> None:
        typed = tokenise(text, language.with_requests)
        before = ["", *(each.text for each in typed)]
        tokens = [_disown(each, follows, language) for each, follows in zip(typed, before, strict=False)]
        super().__init__(tokens, classify(tokens, language.with_requests), language.with_requests)
        self.text = text
        self.is_owned = tokens != typed
        self.said = frozenset[str]().union(*self.kinds)
        self.plain = {*range(len(tokens))} - self._cover(self.said - PLAIN - language.requests.keys())
        self.small = self._cover(_SMALL | {"me"} if sends else _SMALL) - self._cover({"instead-of"})
        self._sends = sends

    def _cover(self, kinds: frozenset[str] | set[str]) -> set[int]:
        """Return the tokens that are in words of some classes, such as "inclusive" in "until and inclusive"."""
        found = [(at, here[kind].end) for at, here in enumerate(self.matches) for kind in kinds & here.keys()]
        return {at for begin, end in found for at in range(begin, end)}

    def find_titles(self, tasks: Sequence[Task]) -> dict[Span, list[Task]]:
        """Return the places of whole titles, with or without articles, and the tasks that have them."""
        words = [(at, word) for at, token in enumerate(self.tokens) for word in list_words(token.text)]
        said = f" {' '.join(word for _, word in words)} "
        titled: dict[Span, list[Task]] = {}
        for task in tasks:
            wanted = list_words(task.title)
            at = said.find(f" {' '.join(wanted)} ")
            if wanted and at >= 0:
                first = said.count(" ", 0, at)
                span = words[first][0], words[first + len(wanted) - 1][0] + 1
                titled.setdefault(span, []).append(task)
        return titled

    def find(self, tasks: Sequence[Task]) -> Iterator[TaskRequest]:
        """Yield the requests about one of some tasks. A whole title comes first."""
        titled = self.find_titles(tasks)
        for span in sorted(titled, key=lambda span: span[0] - span[1]):
            yield from self._find_about(span, find_meant(titled[span], "") or titled[span], is_named=True)

        # Words that are in no schedule may name a task, and "it" may mean any.
        runs = sorted(_group(self.plain - self.find_words(set()).used), key=len, reverse=True)
        pronouns = [range(at, here["pronoun"].end) for at, here in enumerate(self.matches) if "pronoun" in here]
        for run in (*runs, *pronouns):
            yield from self._find_about((run.start, run.stop), *self._find_tasks(run, tasks))

    def find_edits(self, tasks: Sequence[Task]) -> Iterator[TaskRequest]:
        """Yield the changes of fields of a task that is named, and last of one that is not: "set the city to Oslo".

        In "set the city of my reminder to call mum to Oslo", the longest name of a task counts.
        """
        free = [at for at in range(len(self.tokens)) if at not in self.small]
        verb = self._find_separable(free)
        if verb is None or verb[0] is not Intent.RENAME:
            verb = self._find_verb(free)
        if verb is None or verb[0] not in {Intent.CHANGE, Intent.RENAME}:
            return
        inner = [at for at in free if at not in verb[1]]
        for at in reversed([each for each in inner[1:] if "becomes" in self.matches[each]][:_MOST_BECOMES]):
            tail = min((self.tokens[each].start for each in verb[1] if each > at), default=None)
            value = _unquote(self.text[self.tokens[self.matches[at]["becomes"].end - 1].end : tail])
            first = next((each for each in inner if not {*_TARGET, "its"} & self.kinds[each]), at)
            for field, named in self._list_fields(first, at, renames=verb[0] is Intent.RENAME):
                meant = self._find_tasks(named, tasks)[0] if named else find_meant(tasks, "")
                if value and meant:
                    yield TaskRequest(verb[0], meant, field=field, value=value, is_about_tasks=bool(named))

    def _list_fields(self, first: int, end: int, *, renames: bool) -> Iterator[tuple[str, range]]:
        """Yield the field that the words between two tokens may name, and the place of those that name its task."""
        if renames:
            yield "title", range(first, end)
            return
        for at in range(first + 1, min(first + _MOST_FIELD_WORDS + 1, end)):
            link = self.matches[at].get("link")
            if link is not None or _TARGET & self.kinds[at]:  # "die Stadt meiner Erinnerung"
                yield self._say(range(first, at)), range(at if link is None else link.end, end)
        for at in range(first, end - 1):
            if self.tokens[at].text.endswith("'s"):
                yield self._say(range(at + 1, end)), range(first, at + 1)
        yield self._say(range(first, end)), range(0)

    def _find_tasks(self, places: range, tasks: Sequence[Task]) -> tuple[list[Task], bool]:
        """Return the tasks that words name, and whether they do. Words such as "it" and "my reminder" may mean any."""
        own = [at for at in places if not (_NOUNS | _TARGET) & self.kinds[at]]
        words = " ".join(self.tokens[at].text.removesuffix("'s") for at in own or places)
        meant = find_named(tasks, words)
        if not meant and all("pronoun" in self.kinds[at] for at in own):
            meant = find_meant(tasks, "")
            return meant, False
        return meant, bool(content_words(words))

    def _find_about(self, span: Span, tasks: Sequence[Task], is_named: bool) -> Iterator[TaskRequest]:  # noqa: FBT001
        named = set(range(*self._widen(*span)))
        asked = self.find_words(named)
        named |= {at for at, here in enumerate(self.matches) if "own" in here and here["own"].value == 1}
        rest = [at for at in range(len(self.tokens)) if at not in asked.used | named]
        is_about_tasks = self.plain.isdisjoint(rest)
        is_title = span[1] - span[0] > 1 or not self.plain.isdisjoint(named)  # "morning" and words in quotes are none
        if asked.intent is None and is_named and is_title and is_about_tasks and rest:
            asked, tasks = asked._replace(intent=Intent.RESTATE), find_meant(tasks, "")
        is_empty = all("comma" in self.kinds[at] for at in rest)
        if asked.intent is None or not tasks or (self._sends and not (is_empty and "send" in self.said)):
            return
        yield TaskRequest(
            asked.intent,
            tasks,
            [()] if self._sends else self._list_leads(asked, rest, sum(at < span[0] for at in rest)),
            self._say(rest),
            self.language.code,
            is_about_tasks,
            is_whole=is_empty and not asked.has_marks and "once" not in self.said,
            sends=self._sends,
        )

    def _say(self, places: Sequence[int]) -> str:
        """Return some words of the text alone."""
        words = ""
        for at in places:
            token = self.tokens[at]
            is_glued = at - 1 in places and self.tokens[at - 1].end == token.start
            words += f"{'' if is_glued else ' '}{self.text[token.start : token.end]}"
        return words.strip(_RIMS)

    def _list_leads(self, asked: _Asked, rest: Sequence[int], left: int) -> list[Lead]:
        """Return what a verb may ask for with the words around a task, the likeliest first."""
        intent, kinds = asked.intent, [self.kinds[at] for at in rest]
        head = kinds[0] if kinds else frozenset[str]()
        is_once = "once" in self.said
        if intent in _FIRST:
            first = _FIRST[intent]
            if not rest:
                return [(first, _ONE)] if is_once or intent is Intent.SKIP else []
            return [(first,)] if left or intent is not Intent.DELETE else []
        if intent is Intent.RESTATE:
            return [(MAKE,), _NEXT]
        joint = next((at for at, each in enumerate(kinds) if "joint" in each), -1)
        # "Move it on Friday" does not say where to.
        if intent not in _MOVES or (intent is Intent.MOVE and joint < 0 and "on" in head):
            return []
        if "from" in head:
            ways: list[Lead] = [(_MOVE,)]
        elif is_once or (self.is_owned and asked.verb is None):
            ways = [(_MOVE, _ONE, _ONCE, _ONTO)]
        elif joint > 0 and (left or intent is Intent.MOVE):
            ways = [(_MOVE, _OF)]
        elif asked.verb is None:
            ways = [(MAKE,)]
        else:
            ways = [_NEXT, (MAKE,)]
        return [(("postpone", -1 if intent is Intent.ADVANCE else 1),), *ways]

    def _widen(self, first: int, end: int) -> Span:
        """Return the place of a task with the small words around it: "the time of my weekly", "reminder", "is"."""
        if first > 1 and "adverb" in self.kinds[first - 1] and _TARGET & self.kinds[first - 2]:
            first -= 1
        while ends := [
            at
            for at in range(max(first - 3, 0), first)
            for kind in _BEFORE & self.kinds[at]
            if self.matches[at][kind].end == first
        ]:
            first = ends[0]
        self.at = end
        self.skip(*_NOUNS, "dash")  # "Zahnarzt-Erinnerung"
        while self.sees("copula") and not self.sees("at", "mark"):
            self.take("copula")
        return first, self.at

    def list_times(self) -> tuple[str, ...]:
        """Return the runs of words that may be of a schedule."""
        times = list[str]()
        harmless = HARMLESS - {"number", "ordinal", "hence"} | self.language.requests.keys()
        for run in _group({*range(len(self.tokens))} - self.plain):
            # Neither the "an" of "was steht morgen an", nor the "for" of "for next month", which is no length here.
            said = [at for at in run if not self.kinds[at] <= harmless]
            if said:
                times.append(self._say(range(said[0], said[-1] + 1)))
        return tuple(times)

    def find_words(self, named: set[int]) -> _Asked:
        """Return what the words outside a name ask for."""
        used = set(self.small)
        free = [at for at in range(len(self.tokens)) if at not in used | named and "comma" not in self.kinds[at]]
        copulas = [at for at in named if "copula" in self.kinds[at]]  # "soll … sein"
        sent = [at for at in free if self._sends and "send" in self.kinds[at]]
        verb = self._find_separable(sorted([*free, *copulas])) or self._find_verb(free)
        if sent:
            verb = Intent.CHANGE, set(range(sent[0], self.matches[sent[0]]["send"].end))
        intent = Intent.CHANGE if self.is_owned or {"once", "lasting"} & self.said else None
        if verb is not None:
            intent = verb[0]
            used |= verb[1]
        has_marks = False
        for at in free:
            mark = self.matches[at].get("mark")
            if mark is None or (at in used and not sent):
                continue
            has_marks = True
            used |= set() if mark.value == Intent.CHANGE else set(range(at, mark.end))
            if intent in {None, Intent.CHANGE}:
                intent = Intent(mark.value)
        return _Asked(intent, used, None if verb is None else verb[0], has_marks)

    def _find_verb(self, free: Sequence[int]) -> tuple[Intent, set[int]] | None:
        """Return the verb at the head or the end of a text."""
        for at in (*free[:1], *free[-3:]):
            match = self.matches[at].get("verb")
            if match is not None and (at == free[0] or match.end == free[-1] + 1):
                return Intent(match.value), set(range(at, match.end))
        return None

    def _find_separable(self, free: Sequence[int]) -> tuple[Intent, set[int]] | None:
        """Return the verb of two parts, such as "put … on hold" and "sag … ab", the longest first."""
        words = [self.tokens[at].text for at in free]
        found: list[tuple[int, Intent, set[int]]] = []
        for value, texts in self.language.list_words("separable").items():
            for first, _, *last in map(str.split, texts.split("|")):
                size = len(last)
                may_go_on = size > 1 or value in _SHIFTS  # "push it back an hour"
                ends = [
                    at for at in range(len(words)) if words[at:] == last or (may_go_on and words[at:][:size] == last)
                ]
                if ends and first in words[: ends[-1]]:
                    places = {free[words.index(first)], *free[ends[-1] :][:size]}
                    found.append((size, Intent(value), places))
        return max(found, key=lambda each: each[0])[1:] if found else None


def _disown(token: Token, before: str, language: Language) -> Token:
    """Return "tomorrow" for "tomorrow's": a day owns a task in "Monday's stretch"."""
    entries = language.with_requests.entries
    base = _POSSESSION.sub("", token.text)
    kinds = {kind for _, kind, _ in entries.get(base, ())}
    is_word = token.text in entries and before != "next"  # "Mondays", "morgens"
    if is_word or kinds.isdisjoint(_DAYS):
        return token
    return token._replace(text=base, end=token.start + len(base))


def _group(places: set[int]) -> list[range]:
    """Return the runs of consecutive places."""
    runs = list[range]()
    for at in sorted(places):
        if runs and runs[-1].stop == at:
            runs[-1] = range(runs[-1].start, at + 1)
        else:
            runs.append(range(at, at + 1))
    return runs


def _unquote(text: str) -> str:
    """Return a value without its quotes, or the full stop at its end."""
    text = " ".join(text.split())
    if re.fullmatch(QUOTED, text):
        return text[1:-1]
    return re.sub(r"(?<!\.)\.$", "", text)
