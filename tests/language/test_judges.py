"""Phrases with titles, judged by rows that were written without the grammar, and by titles around bare phrases."""

from __future__ import annotations

import pytest
from tests.language.judge import (
    PLAIN_TITLES,
    TIME_TITLES,
    judge_cases,
    judge_titles,
    list_groups,
    read_case,
    split_list,
)

from cloudsched.language.languages import LANGUAGES

LEAST_RIGHT = 0.87
LEAST_WITH_PLAIN_TITLES = 0.98
LEAST_WITH_TIME_TITLES = 0.8
MOST_WRONG = 0.005
MOST_UNKNOWN = 0.01


def test_clear_phrases_are_read_with_their_titles() -> None:
    """Nearly all are right with their title, and none means another time than all that are accepted."""
    for name, cases in list_groups():
        if name.endswith("clear"):
            score, missed = judge_cases(cases)
            assert score["titled"] >= LEAST_RIGHT * len(cases), (name, missed)
            assert not score["wrong"], (name, missed)


def test_what_nobody_can_know_makes_no_schedule() -> None:
    for name, cases in list_groups():
        if name.endswith("impossible"):
            score, missed = judge_cases(cases)
            assert score["right"] == len(cases), (name, missed)


def test_a_language_is_known_by_its_words() -> None:
    """A phrase without a language is read as it is in its own, or hardly ever not at all: "Arzttermin 5.7. 8:40"."""
    cases = [case for _, some in list_groups() for case in some]
    unread = 0
    for case in cases:
        own, guessed = (read_case(case, locale) for locale in (case["lang"], None))
        if guessed.kind == "refusal" != own.kind:
            unread += 1
        else:
            assert (own.schedule, own.title) == (guessed.schedule, guessed.title), case["phrase"]
    assert unread <= MOST_UNKNOWN * len(cases)


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_a_title_changes_no_schedule(language: str, *, everything: bool) -> None:
    """Wherever it stands, and whatever words it has: what is not certain is asked or refused."""
    count = 4000 if everything else 200
    for titles, least in ((PLAIN_TITLES, LEAST_WITH_PLAIN_TITLES), (TIME_TITLES, LEAST_WITH_TIME_TITLES)):
        score, missed = judge_titles(split_list(titles[language]), language, count)
        assert score["right"] >= least * count, missed
        assert score["wrong"] <= max(1, MOST_WRONG * count), [each for each in missed if each.startswith("wrong")]
