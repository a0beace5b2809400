"""Find what a text asks of stored tasks, before its schedule is read: to change, skip, pause or cancel one, or a list.

A request has a verb, first or last, or a mark such as "instead of", and names a task. Nothing here reads a schedule: a
request hands the words that are left to the grammar of changes, which has to understand each.
"""

from __future__ import annotations

import re
from enum import IntEnum
from itertools import groupby, product
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.drafts.deliveries import list_languages, read_requests
from cloudsched.drafts.phrases import content_words
from cloudsched.drafts.situation import Lead, find_meant, find_named, list_words
from cloudsched.language.languages import LANGUAGES
from cloudsched.language.lexicon import HARMLESS, PLAIN, Cursor, Token, classify, tokenise
from cloudsched.language.reader import MAX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cloudsched.domain.documents.delivery_channels import DeliveryChannel
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.responses.api_responses import DraftOperation
    from cloudsched.language.lexicon import Language


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
_MOVES: Final = {Intent.CHANGE, Intent.MOVE, Intent.POSTPONE, Intent.ADVANCE}


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
        asked, said = _Said(text, language).find_words(set()), _Said(title, language)
        verb = asked.intent if asked.has_verb else None
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
            gap = text[c.tokens[at - 1].end : c.tokens[at].start]
            is_joined = c.skip("comma", "and", "then") or "\n" in gap
            begin = c.at
            c.skip("padding", "mark")
            has_verb = c.take("verb", "send") is not None
            if is_joined and has_verb and (c.sees("pronoun", "its") or "\n" in gap):
                splits.append((c.tokens[at - 1].end, c.tokens[begin].start))
    if not 0 < len(splits) <= _MOST_JOINED:
        return None
    end, begin = max(splits)
    return text[:end], text[begin:]


def find_list(text: str, load_tasks: Callable[[], Sequence[Task]]) -> tuple[Sequence[Task], tuple[str, ...]] | None:
    """Return the tasks and the runs of words of time of a text that asks which tasks there are, or when one runs.

    "What is on tomorrow?" It asks for all tasks if it names none.
    """
    for language in list_languages(text[:MAX_LENGTH]):
        said = _Said(text[:MAX_LENGTH], language)
        c = Cursor(said.tokens, said.matches, said.language)
        c.skip("padding", "comma")
        named: Sequence[Task] = ()
        if c.sees("question-word"):
            named = [task for task in load_tasks() if said.find_title(task) is not None]
            names_tasks = any((_NOUNS | {"agenda"}) & each.keys() for each in said.matches[c.at :])
            # "What is on Monday" has only words of a question and of a time.
            has_time = len(said.plain) < len(said.tokens)
            only_asks = has_time and all({"question-word", "copula"} & said.matches[at].keys() for at in said.plain)
            if not (named or names_tasks or text.rstrip().endswith("?") or only_asks):
                return None
        elif c.take("list-verb") is not None:
            c.skip("own", "article", "each", "agenda")
            if not c.sees(*_NOUNS):
                return None
        else:
            continue
        return named or load_tasks(), said.list_times()
    return None


class _Asked(NamedTuple):
    """What the words outside a name ask for, and the tokens that say so, or only are polite.

    Attributes:
        has_verb: A verb asks for it, and no mark alone.
        is_once: The words say that it is for one occurrence.
        has_marks: Beside the verb, there are marks such as "not", which may turn it round.
        sends: The verb is one such as "send".
    """

    intent: Intent | None
    used: set[int]
    has_verb: bool
    is_once: bool
    has_marks: bool
    sends: bool


_SINGLE: Final = {Intent.SKIP, Intent.POSTPONE, Intent.ADVANCE, Intent.PAUSE, Intent.RESUME}
"""What is hardly work to do, as "cancel the gym membership on 1 October" may be."""
_MARKS: Final = frozenset({"mark", "lasting", "once"})
_TARGET: Final = frozenset({"own", "article"})
_BEFORE: Final = _TARGET | {"copula", "link", "field"}
_NOUNS: Final = frozenset({"task-noun", "noun"})
_POSSESSION: Final = re.compile("'?s$")
_RIMS: Final = " .,;:-–—"  # noqa: RUF001 - what people type
_MOST_FIELD_WORDS: Final = 4
_MOST_BECOMES: Final = 6
"""The number of words such as "to" at which the name of a task may end."""
_MOST_JOINED: Final = 10
"""The number of requests that a text may join."""


class _Said:
    """A text with the classes of its words, and which of them are accounted for."""

    def __init__(self, text: str, language: Language, *, sends: bool = False) -> None:
        self.language = language.with_requests
        self.text = text
        typed = tokenise(text, self.language)
        before = ["", *(each.text for each in typed)]
        self.tokens = [self._disown(each, follows) for each, follows in zip(typed, before, strict=False)]
        self.is_owned = self.tokens != typed
        self.matches = classify(self.tokens, self.language)
        self.words = [(at, word) for at, token in enumerate(self.tokens) for word in list_words(token.text)]
        self.plain = self._list_plain()
        self._sends = sends

    def _disown(self, token: Token, before: str) -> Token:
        """Return "tomorrow" for "tomorrow's": a day owns a task in "Monday's stretch"."""
        entries, base = self.language.entries, _POSSESSION.sub("", token.text)
        kinds = {kind for _, kind, _ in entries.get(base, ())}
        is_day = not kinds.isdisjoint({"weekday", "relday", "tonight", "month", "unit"})
        is_word = token.text in entries and before != "next"  # "Mondays", "morgens"
        return token._replace(text=base) if is_day and not is_word else token

    def find_title(self, task: Task) -> tuple[int, int] | None:
        """Return the place of a task's title in a text, with or without articles. None if it is not there."""
        wanted = list_words(task.title)
        for begin in range(len(self.words) - len(wanted) + 1 if wanted else 0):
            places, words = zip(*self.words[begin : begin + len(wanted)], strict=True)
            if [*words] == wanted:
                return places[0], places[-1] + 1
        return None

    def find(self, tasks: Sequence[Task]) -> Iterator[TaskRequest]:
        """Yield the requests about one of some tasks. A whole title comes first."""
        titled: dict[tuple[int, int], list[Task]] = {}
        for task in tasks:
            if (span := self.find_title(task)) is not None:
                titled.setdefault(span, []).append(task)
        for span in sorted(titled, key=lambda span: span[0] - span[1]):
            yield from self._find_about(span, find_meant(titled[span], "") or titled[span], is_named=True)

        for span in self._list_runs():
            yield from self._find_about(span, *self._find_tasks(*span, tasks))

    def find_edits(self, tasks: Sequence[Task]) -> Iterator[TaskRequest]:
        """Yield the changes of fields of a task that is named, and last of one that is not: "set the city to Oslo".

        In "set the city of my reminder to call mum to Oslo", the longest name of a task counts.
        """
        small, _ = self._take_small(set())
        free = [at for at in range(len(self.tokens)) if at not in small]
        verb = self._find_separable(free)
        if verb is None or verb[0] is not Intent.RENAME:
            verb = self._find_verb(free)
        if verb is None or verb[0] not in {Intent.CHANGE, Intent.RENAME}:
            return
        inner = [at for at in free if at not in verb[1]]
        starts = [each.start for each in self.tokens]
        for at in reversed([each for each in inner[1:] if "becomes" in self.matches[each]][:_MOST_BECOMES]):
            begin = self.matches[at]["becomes"].end
            tail = min((starts[each] for each in verb[1] if each > at), default=None)
            value = _unquote(self.text[starts[begin] : tail]) if begin < len(starts) else ""
            first = next((each for each in inner if not {*_TARGET, "its"} & self.matches[each].keys()), at)
            for field, named in self._list_fields(first, at, renames=verb[0] is Intent.RENAME):
                meant = self._find_tasks(*named, tasks)[0] if named else find_meant(tasks, "")
                if value and meant:
                    yield TaskRequest(verb[0], meant, field=field, value=value, is_about_tasks=bool(named))

    def _list_fields(self, first: int, end: int, *, renames: bool) -> Iterator[tuple[str, tuple[int, int] | None]]:
        """Yield the field that the words between two tokens may name, and the place of those that name its task."""
        if renames:
            yield "title", (first, end)
            return
        for at in range(first + 1, min(first + _MOST_FIELD_WORDS + 1, end)):
            link = self.matches[at].get("link")
            if link is not None and link.end < end:
                yield self._say(range(first, at)), (link.end, end)
            elif _TARGET & self.matches[at].keys():  # "die Stadt meiner Erinnerung"
                yield self._say(range(first, at)), (at, end)
        for at in range(first, end - 1):
            if self.tokens[at].text.endswith("'s"):
                yield self._say(range(at + 1, end)), (first, at + 1)
        yield self._say(range(first, end)), None

    def _find_tasks(self, begin: int, end: int, tasks: Sequence[Task]) -> tuple[list[Task], bool]:
        """Return the tasks that words name, and whether they do. Words such as "it" and "my reminder" may mean any."""
        said = [(self.tokens[at].text.removesuffix("'s"), self.matches[at].keys()) for at in range(begin, end)]
        words = " ".join([text for text, kinds in said if not (_NOUNS | _TARGET) & kinds] or [text for text, _ in said])
        meant = find_named(tasks, words)
        names = _NOUNS | {"pronoun"}
        is_general = all((names | _TARGET) & kinds for _, kinds in said)
        return meant or (find_meant(tasks, "") if is_general else []), bool(meant and content_words(words))

    def _list_runs(self) -> Iterator[tuple[int, int]]:
        """Yield the places of words that may name a task: those that are in no schedule, or "it"."""
        names = self.plain - self.find_words(set()).used
        groups = groupby(range(len(self.tokens)), names.__contains__)
        runs = [list(places) for is_name, places in groups if is_name]
        pronouns = [(at, each["pronoun"].end) for at, each in enumerate(self.matches) if "pronoun" in each]
        yield from ((run[0], run[-1] + 1) for run in sorted(runs, key=len, reverse=True))
        yield from pronouns

    def _list_plain(self) -> set[int]:
        """Return the tokens that are in no word of a schedule, such as "inclusive" is in "until and inclusive"."""
        plain = set(range(len(self.tokens)))
        for at, kinds in enumerate(self.matches):
            for kind, match in kinds.items():
                if kind not in self.language.requests and kind not in PLAIN:
                    plain -= set(range(at, match.end))
        return plain

    def _find_about(self, span: tuple[int, int], tasks: Sequence[Task], is_named: bool) -> Iterator[TaskRequest]:  # noqa: FBT001
        named = set(range(*self._widen(*span)))
        asked = self.find_words(named)
        named |= {at for at, kinds in enumerate(self.matches) if "own" in kinds and kinds["own"].value == 1}
        rest = [at for at in range(len(self.tokens)) if at not in asked.used and at not in named]
        is_about_tasks = self.plain.isdisjoint(rest)
        kinds = {kind for at in rest for kind in self.matches[at]}
        is_time = is_about_tasks and kinds - {"start", "edge"} and kinds.isdisjoint({"remind", "quote"})
        says_no = any("verb" in each and each["verb"].value == Intent.SKIP for each in self.matches)
        is_title = span[1] - span[0] > 1 or not self.plain.isdisjoint(named)  # "morning" and words in quotes are none
        if asked.intent is None and is_named and is_title and is_time:
            asked, tasks = asked._replace(intent=Intent.RESTATE), find_meant(tasks, "")
        elif not says_no and self.find_words(set()).intent is None:
            return
        is_empty = all("comma" in self.matches[at] for at in rest)
        if asked.intent is None or not tasks or (self._sends and not (asked.sends and is_empty)):
            return
        yield TaskRequest(
            asked.intent,
            tasks,
            [()] if self._sends else self._list_leads(asked, rest, sum(at < span[0] for at in rest)),
            self._say(rest),
            self.language.code,
            is_about_tasks,
            is_whole=is_empty and not asked.is_once and not asked.has_marks,
            sends=self._sends,
        )

    def _say(self, places: Sequence[int]) -> str:
        """Return the text without all other words."""
        words = self.text
        for at in reversed(range(len(self.tokens))):
            token = self.tokens[at]
            typed = self.text[token.start : token.end]
            kept = "" if at not in places else token.text if _POSSESSION.search(typed) else typed
            words = f"{words[: token.start]} {kept} {words[token.end :]}" if kept != typed else words
        return " ".join(words.split()).strip(_RIMS)

    def _list_leads(self, asked: _Asked, rest: Sequence[int], left: int) -> list[Lead]:
        """Return what a verb may ask for with the words around a task, the likeliest first."""
        intent, kinds = asked.intent, [self.matches[at].keys() for at in rest]
        joint = next((at for at, each in enumerate(kinds) if "joint" in each), -1)
        says_on = joint < 0 and bool(kinds) and "on" in kinds[0]
        if intent is not None and (first := _FIRST.get(intent)) is not None:
            is_one = asked.is_once or intent is Intent.SKIP
            return ([(first,)] if left or intent is not Intent.DELETE else []) if rest else [(first, _ONE)] * is_one
        if intent is Intent.RESTATE:
            return [(MAKE,), _NEXT]
        if intent not in _MOVES or (intent is Intent.MOVE and says_on):  # "move it on Friday" does not say where to
            return []
        if kinds and "from" in kinds[0]:
            ways: list[Lead] = [(_MOVE,)]
        elif asked.is_once or (self.is_owned and not asked.has_verb):
            ways = [(_MOVE, _ONE, _ONCE, _ONTO)]
        elif joint > 0 and (left or intent is Intent.MOVE):
            ways = [(_MOVE, _OF)]
        else:
            ways = [*[_NEXT] * asked.has_verb, (MAKE,)]
        return [(("postpone", -1 if intent is Intent.ADVANCE else 1),), *ways]

    def _widen(self, begin: int, end: int) -> tuple[int, int]:
        """Return the place of a task with the small words around it: "the time of my weekly", "reminder", "is"."""
        first = begin
        if first > 1 and "adverb" in self.matches[first - 1] and _TARGET & self.matches[first - 2].keys():
            first -= 1
        while ends := [
            at
            for at in range(max(first - 3, 0), first)
            if any(match.end == first and kind in _BEFORE for kind, match in self.matches[at].items())
        ]:
            first = ends[0]
        while end < len(self.tokens) and {*_NOUNS, "dash"} & self.matches[end].keys():
            end += 1  # "Zahnarzt-Erinnerung"
        while (
            end < len(self.tokens) and "copula" in self.matches[end] and not {"at", "mark"} & self.matches[end].keys()
        ):
            end = self.matches[end]["copula"].end
        return first, end

    def list_times(self) -> tuple[str, ...]:
        """Return the runs of words that may be of a schedule."""
        times = list[str]()
        harmless = HARMLESS - {"number", "ordinal", "hence"} | self.language.requests.keys()
        for is_title, places in groupby(range(len(self.tokens)), self.plain.__contains__):
            run = [] if is_title else list(places)
            while run and self.matches[run[-1]].keys() <= harmless:  # the "an" of "was steht morgen an"
                run.pop()
            while run and self.matches[run[0]].keys() <= harmless:  # "for next month" is no length here
                run.pop(0)
            if run:
                times.append(self._say(run))
        return tuple(times)

    def find_words(self, named: set[int]) -> _Asked:
        """Return what the words outside a name ask for."""
        used, kinds = self._take_small(named)
        free = [at for at in range(len(self.tokens)) if at not in used | named and "comma" not in self.matches[at]]
        copulas = [at for at in named if "copula" in self.matches[at]]  # "soll … sein"
        sent = [(at, self.matches[at]["send"].end) for at in free if self._sends and "send" in self.matches[at]]
        verb = (Intent.CHANGE, set(range(*sent[0]))) if sent else self._find_separable(sorted([*free, *copulas]))
        verb = verb or self._find_verb(free)
        intent = Intent.CHANGE if self.is_owned or {"once", "lasting"} & kinds else None
        if verb is not None:
            intent = verb[0]
            used |= verb[1]
        has_marks = False
        for at in free:
            mark = self.matches[at].get("mark")
            if mark is None or (at in used and not sent) or not named.isdisjoint(range(at, mark.end)):
                continue
            has_marks = True
            used |= set() if mark.value == Intent.CHANGE else set(range(at, mark.end))
            if intent in {None, Intent.CHANGE}:
                intent = Intent(mark.value)
        return _Asked(intent, used, verb is not None, "once" in kinds, has_marks, bool(sent))

    def _take_small(self, named: set[int]) -> tuple[set[int], set[str]]:
        """Return the tokens of polite words and the like, and their classes.

        A longer mark may begin with one: "instead of".
        """
        used, found = set[int](), set[str]()
        kinds = ("stop", "padding", "lasting", "once", *(["me"] if self._sends else []))
        for at, kind in product(range(len(self.tokens)), kinds):
            match, mark = self.matches[at].get(kind), self.matches[at].get("mark")
            if match is not None and (mark is None or mark.end <= match.end) and named.isdisjoint(range(at, match.end)):
                used |= set(range(at, match.end))
                found.add(kind)
        return used, found

    def _find_verb(self, free: Sequence[int]) -> tuple[Intent, set[int]] | None:
        """Return the verb at the head or the end of a text."""
        for at in (*free[:1], *free[-3:]):
            match = self.matches[at].get("verb")
            if match is not None and (at == free[0] or match.end == free[-1] + 1):
                return Intent(match.value), set(range(at, match.end))
        return None

    def _find_separable(self, free: Sequence[int]) -> tuple[Intent, set[int]] | None:
        """Return the verb of two parts, such as "put … on hold" and "sag … ab", the longest first."""
        found: list[tuple[int, Intent, set[int]]] = [(0, Intent.CHANGE, set())]
        words = [self.tokens[at].text for at in free]
        for value, texts in self.language.list_words("separable").items():
            for first, *last in (each.replace(" …", "").split() for each in texts.split("|")):
                size, begin = len(last), words.index(first) if first in words else len(words)
                end = max((at for at in range(begin + 1, len(words)) if words[at : at + size] == last), default=0)
                shifts = value in {Intent.POSTPONE, Intent.ADVANCE}  # "push it back an hour"
                if end and (end + size == len(words) or shifts or size > 1):
                    found.append((size, Intent(value), {free[begin], *free[end : end + size]}))
        size, intent, used = max(found, key=lambda each: each[0])
        return (intent, used) if size else None


def _unquote(text: str) -> str:
    """Return a value without its quotes, or the full stop at its end."""
    text = " ".join(text.split())
    if len(text) > 1 and text[0] in "\"“„'" and text[-1] in "\"”“'":
        return text[1:-1]
    return text.removesuffix(".") if not text.endswith("..") else text
