"""Find what a text asks of stored tasks, before its schedule is read: to change, skip, pause or cancel one, or a list.

A request has a verb, first or last, or a mark such as "instead of", and names a task. Nothing here reads a schedule: a
request yields phrases for the grammar of changes, which has to understand every word that is left.
"""

from __future__ import annotations

import re
from enum import IntEnum
from itertools import groupby, pairwise, product
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.drafts.deliveries import list_languages
from cloudsched.drafts.phrases import content_words, to_singular
from cloudsched.drafts.situation import Lead, find_meant, find_named
from cloudsched.language.languages import LANGUAGES
from cloudsched.language.lexicon import HARMLESS, Cursor, Token, classify, is_plain, tokenise
from cloudsched.language.reader import MAX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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


class TaskRequest(NamedTuple):
    """What a text asks of a stored task.

    Attributes:
        tasks: The tasks that may be meant.
        leads: What the verb may ask for in words of the grammar. The first one that is understood counts.
        words: The words besides the verb and the task.
        language: The language of the words.
        is_about_tasks: Nothing else can be meant: the words besides the verb and the task are of a schedule, or there
            are none.
        is_whole: There are no words but the verb and the task, so that the task as a whole is meant.
    """

    intent: Intent
    tasks: tuple[Task, ...]
    leads: tuple[Lead, ...]
    words: str
    language: str
    is_about_tasks: bool
    is_whole: bool


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


def find_requests(text: str, tasks: Sequence[Task]) -> Iterator[TaskRequest]:
    """Yield what a text may ask of a stored task, in each language, the most likely first."""
    for language in list_languages(text) if tasks and len(text) <= MAX_LENGTH else ():
        said = _Said(text, language)
        yield from said.find(tasks)


class ListRequest(NamedTuple):
    """What a text asks for that asks which tasks there are.

    Attributes:
        tasks: The tasks that it names. All that there are if it names none.
        times: The words of time in it, each run of them.
    """

    tasks: tuple[Task, ...]
    times: tuple[str, ...]


def find_list(text: str, load_tasks: Callable[[], Sequence[Task]]) -> ListRequest | None:
    """Return what a text asks for that asks which tasks there are, or when one runs: "what is on tomorrow?"."""
    for language in list_languages(text[:MAX_LENGTH]):
        said = _Said(text[:MAX_LENGTH], language)
        c = Cursor(said.tokens, said.matches, said.language)
        c.skip("padding", "comma")
        if c.sees("question-word"):
            named = tuple(task for task in load_tasks() if _find_title(said, task) is not None)
            names_tasks = any((_NOUNS | {"agenda"}) & each.keys() for each in said.matches[c.at :])
            # "What is on Monday" has only words of a question and of a time.
            has_time = len(said.plain) < len(said.tokens)
            only_asks = has_time and all({"question-word", "copula"} & said.matches[at].keys() for at in said.plain)
            if named or names_tasks or text.rstrip().endswith("?") or only_asks:
                return ListRequest(named or tuple(load_tasks()), said.list_times())
            return None
        if c.take("list-verb") is not None:
            c.skip("own", "article", "each", "agenda")
            return ListRequest(tuple(load_tasks()), said.list_times()) if c.sees(*_NOUNS) else None
    return None


class _Asked(NamedTuple):
    """What the words outside a name ask for, and the tokens that say so, or only are polite.

    Attributes:
        has_verb: A verb asks for it, and no mark alone.
        is_once: The words say that it is for one occurrence.
        has_marks: Beside the verb, there are marks such as "not", which may turn it round.
    """

    intent: Intent | None
    used: set[int]
    has_verb: bool
    is_once: bool
    has_marks: bool


_SINGLE: Final = {Intent.SKIP, Intent.POSTPONE, Intent.ADVANCE, Intent.PAUSE, Intent.RESUME}
"""What is hardly work to do, as "cancel the gym membership on 1 October" may be."""
_MARKS: Final = frozenset({"mark", "lasting", "once"})
_TARGET: Final = frozenset({"own", "article"})
_NOUNS: Final = frozenset({"task-noun", "noun"})
_POSSESSIVE: Final = re.compile(r"(?P<base>[^\W\d_]+)(?P<mark>['’]?)s\b")  # noqa: RUF001 - what people type


class _Said:
    """A text with the classes of its words, and which of them are accounted for."""

    def __init__(self, text: str, language: Language) -> None:
        self.language = language.with_requests
        self.text = _POSSESSIVE.sub(self._drop_possessive, text)
        self.is_owned = self.text != text
        self.tokens = tokenise(self.text, self.language)
        self.matches = classify(self.tokens, self.language)
        self.plain = self._list_plain()
        self._harmless = HARMLESS - {"number", "ordinal", "hence"} | self.language.requests.keys()

    def _drop_possessive(self, found: re.Match[str]) -> str:
        """Return "tomorrow" for "tomorrow's": a day owns a task in "Monday's stretch"."""
        entries = self.language.entries
        kinds = {kind for _, kind, _ in entries.get(found["base"].lower(), ())}
        is_next = found.string[: found.start()].lower().endswith("next ")
        is_word = found[0].lower() in entries  # "Mondays", "morgens"
        is_day = not kinds.isdisjoint({"weekday", "relday", "tonight", "month", "unit"})
        return found["base"] if is_day and (found["mark"] or is_next or not is_word) else found[0]

    @property
    def _has_request(self) -> bool:
        says_no = any("verb" in kinds and kinds["verb"].value == Intent.SKIP for kinds in self.matches)
        return says_no or self.find_words(set()).intent is not None

    def find(self, tasks: Sequence[Task]) -> Iterator[TaskRequest]:
        """Yield the requests about one of some tasks. A whole title comes first."""
        titled = [(span, task) for task in tasks if (span := _find_title(self, task)) is not None]
        spans = sorted({span for span, _ in titled}, key=lambda span: span[0] - span[1])
        for span in spans:
            own = [task for each, task in titled if each == span]
            yield from self._find_about(span, find_meant(own, "") or own, is_named=True)

        for span in self._list_runs():
            words, is_general = self._name(*span)
            meant = find_named(tasks, words)
            is_known = bool(meant and content_words(words))
            if is_general:
                meant = meant or find_meant(tasks, "")
            yield from self._find_about(span, meant, is_named=is_known)

    def _name(self, begin: int, end: int) -> tuple[str, bool]:
        """Return the words that name a task, and whether they may mean any, such as "it" and "my reminder"."""
        said = [(self.tokens[at].text, self.matches[at].keys()) for at in range(begin, end)]
        own = [text for text, kinds in said if not (_NOUNS | _TARGET) & kinds]
        names = _NOUNS | {"pronoun"}
        is_general = any(names & kinds for _, kinds in said) and all((names | _TARGET) & kinds for _, kinds in said)
        return " ".join(own or [text for text, _ in said]), is_general

    def _list_runs(self) -> Iterator[tuple[int, int]]:
        """Yield the places of words that may name a task: those that are in no schedule, or "it"."""
        names = self.plain - self.find_words(set()).used
        groups = groupby(range(len(self.tokens)), names.__contains__)
        runs = [list(places) for is_name, places in groups if is_name]
        pronouns = [(at, each["pronoun"].end) for at, each in enumerate(self.matches) if "pronoun" in each]
        yield from ((run[0], run[-1] + 1) for run in sorted(runs, key=len, reverse=True))
        yield from pronouns[:2]

    def _list_plain(self) -> set[int]:
        """Return the tokens that are in no word of a schedule, such as "inclusive" is in "until and inclusive"."""
        plain = set(range(len(self.tokens)))
        for at, kinds in enumerate(self.matches):
            own = {kind: match for kind, match in kinds.items() if kind not in self.language.requests}
            if not is_plain(own):
                plain -= set(range(at, max(match.end for kind, match in own.items() if not is_plain({kind: match}))))
        return plain

    def _find_about(self, span: tuple[int, int], tasks: Sequence[Task], *, is_named: bool) -> Iterator[TaskRequest]:
        named = set(range(*self._widen(*span)))
        asked = self.find_words(named)
        named |= {at for at, kinds in enumerate(self.matches) if "own" in kinds and kinds["own"].value == 1}
        rest = [at for at in range(len(self.tokens)) if at not in asked.used and at not in named]
        is_about_tasks = self.plain.isdisjoint(rest)
        kinds = {kind for at in rest for kind in self.matches[at]}
        is_time = is_about_tasks and kinds - {"start", "edge"} and kinds.isdisjoint({"remind", "quote"})
        is_title = span[1] - span[0] > 1 or not self.plain.isdisjoint(named)  # "morning" and words in quotes are none
        if asked.intent is None and is_named and is_title and is_time:
            asked, tasks = asked._replace(intent=Intent.RESTATE), find_meant(tasks, "")
        elif not self._has_request:
            return
        if asked.intent is None or not tasks:
            return
        is_whole = not asked.is_once and not asked.has_marks and all("comma" in self.matches[at] for at in rest)
        leads = tuple(self._list_leads(asked, rest, sum(at < span[0] for at in rest)))
        yield TaskRequest(
            asked.intent, tuple(tasks), leads, self._join(rest), self.language.code, is_about_tasks, is_whole
        )

    def _list_leads(self, asked: _Asked, rest: Sequence[int], left: int) -> Iterator[Lead]:
        """Yield what a verb may ask for with the words around a task, the likeliest first."""
        kinds = [self.matches[at].keys() for at in rest]
        joint = next((at for at, each in enumerate(kinds) if "joint" in each), -1)
        match asked.intent:
            case Intent.SKIP | Intent.CANCEL | Intent.PAUSE:
                if rest:
                    yield (_SKIP,)
                elif asked.is_once or asked.intent is Intent.SKIP:
                    yield _SKIP, _ONE
            case Intent.DROP | Intent.DELETE:
                if left or asked.intent is Intent.DROP:
                    yield (_DROP,)
            case Intent.ADD:
                yield (_ADD,)
            case Intent.RESTATE:
                yield from ((MAKE,), (_MOVE, _ONE, _ONTO))
            case Intent.MOVE if joint < 0 and kinds and "on" in kinds[0]:
                return  # "move it on Friday" does not say where to
            case Intent.POSTPONE | Intent.ADVANCE | Intent.CHANGE | Intent.MOVE:
                is_once = asked.is_once or (self.is_owned and not asked.has_verb)
                yield (("postpone", -1 if asked.intent is Intent.ADVANCE else 1),)
                if kinds and "from" in kinds[0]:
                    yield (_MOVE,)
                elif is_once:
                    yield _MOVE, _ONE, _ONCE, _ONTO
                elif joint > 0 and (left or asked.intent is Intent.MOVE):
                    yield _MOVE, _OF
                else:
                    if asked.has_verb:
                        yield _MOVE, _ONE, _ONTO
                    yield (MAKE,)
            case _:
                return

    def _join(self, places: Sequence[int]) -> str:
        tokens, text = self.tokens, self.text
        parts = ""
        for before, at in pairwise([-2, *places]):
            gap = text[tokens[before].end : tokens[at].start] if at == before + 1 else " "
            parts += f"{gap}{text[tokens[at].start : tokens[at].end]}"
        return parts.strip(" ,;:-–—")  # noqa: RUF001 - what people type

    def _widen(self, begin: int, end: int) -> tuple[int, int]:
        """Return the place of a task with the small words around it: "of my", "reminder", "is"."""
        at = begin
        while at and {*_TARGET, "copula"} & self.matches[at - 1].keys() and "weekday" not in self.matches[at - 1]:
            at -= 1
        links = [(place, self.matches[place].get("link")) for place in range(max(begin - 3, 0), begin)]
        first = min([at, *(place for place, link in links if link is not None and link.end in {at, begin})])
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
        for is_title, places in groupby(range(len(self.tokens)), self.plain.__contains__):
            run = [] if is_title else list(places)
            while run and self.matches[run[-1]].keys() <= self._harmless:  # the "an" of "was steht morgen an"
                run.pop()
            while run and self.matches[run[0]].keys() <= self._harmless:  # "for next month" is no length here
                run.pop(0)
            if run:
                times.append(self.text[self.tokens[run[0]].start : self.tokens[run[-1]].end])
        return tuple(times)

    def find_words(self, named: set[int]) -> _Asked:
        """Return what the words outside a name ask for."""
        free = [at for at in range(len(self.tokens)) if at not in named]
        used = {at for at in free if "stop" in self.matches[at]} | self._list_small(named)
        left = [at for at in free if at not in used and "comma" not in self.matches[at]]
        is_once, is_lasting = (any(kind in self.matches[at] for at in free) for kind in ("once", "lasting"))

        before = [at for at in left if at < min(named, default=0)][-1:]
        copulas = [at for at in named if "copula" in self.matches[at]]  # "soll … sein"
        verb = self._find_separable(sorted([*left, *copulas])) or self._find_verb(left, before)
        intent = Intent.CHANGE if is_once or is_lasting or self.is_owned else None
        if verb is not None:
            intent = verb[0]
            used |= verb[1]
        has_marks = False
        for at in left:
            mark = self.matches[at].get("mark")
            if mark is None or at in used or not named.isdisjoint(range(at, mark.end)):
                continue
            said = Intent(mark.value)
            has_marks = True
            used |= set() if said is Intent.CHANGE else set(range(at, mark.end))
            if intent in {None, Intent.CHANGE}:
                intent = said
        return _Asked(intent, used, verb is not None, is_once, has_marks)

    def _list_small(self, named: set[int]) -> set[int]:
        """Return the tokens of polite words and the like, unless a longer mark begins with them: "instead of"."""
        found = set[int]()
        for at, kind in product(range(len(self.tokens)), ("padding", "lasting", "once")):
            match, mark = self.matches[at].get(kind), self.matches[at].get("mark")
            if match is not None and (mark is None or mark.end <= match.end) and named.isdisjoint(range(at, match.end)):
                found |= set(range(at, match.end))
        return found

    def _find_verb(self, free: Sequence[int], before: Sequence[int]) -> tuple[Intent, set[int]] | None:
        """Return the verb at the head or the end of a text, or "no" before the name of a task."""
        for at in (*free[:1], *free[-3:], *before):
            match = self.matches[at].get("verb")
            is_no = match is not None and at in before and match.value == Intent.SKIP
            if match is not None and (at == free[0] or match.end == free[-1] + 1 or is_no):
                return Intent(match.value), set(range(at, match.end))
        return None

    def _find_separable(self, free: Sequence[int]) -> tuple[Intent, set[int]] | None:
        """Return the verb of two parts, such as "put … on hold" and "sag … ab", the longest first."""
        found = list[tuple[int, Intent, set[int]]]()
        words = [self.tokens[at].text for at in free]
        for value, texts in self.language.requests["separable"].items():
            for first, last in (each.split(" … ") for each in texts.split("|")):
                parts = last.split()
                size = len(parts)
                begin = words.index(first) if first in words else len(words)
                ends = [at for at in range(begin + 1, len(words)) if words[at : at + size] == parts]
                shifts = Intent(value) in {Intent.POSTPONE, Intent.ADVANCE}  # "push it back an hour"
                if ends and (ends[-1] + size == len(words) or shifts or size > 1):
                    found.append((size, Intent(value), {free[begin], *free[ends[-1] : ends[-1] + size]}))
        best = max(found, key=lambda each: each[0], default=None)
        return None if best is None else best[1:]


def _find_title(said: _Said, task: Task) -> tuple[int, int] | None:
    """Return the place of a task's title in a text, with or without articles. None if it is not there."""
    wanted = [_plain(each) for each in tokenise(task.title, said.language) if not _is_article(said, each)]
    places = [at for at, each in enumerate(said.tokens) if not _is_article(said, each)]
    words = [_plain(said.tokens[at]) for at in places]
    for begin in range(len(words) - len(wanted) + 1 if wanted else 0):
        if words[begin : begin + len(wanted)] == wanted:
            return places[begin], places[begin + len(wanted) - 1] + 1
    return None


def _plain(token: Token) -> str:
    return to_singular(token.text.casefold().removesuffix("'s"))


def _is_article(said: _Said, token: Token) -> bool:
    return any(kind == "article" for _, kind, _ in said.language.entries.get(token.text, ()))
