"""A fixed sample of paraphrases in every language."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from random import Random

import pytest
from tests.language.paraphrases import TONGUES, judge, make

from cloudsched.errors import InvalidSchedule
from cloudsched.language import read_schedule
from cloudsched.language.languages import LANGUAGES

_MOST_MISSED = 0.01


def test_paraphrases_mean_what_their_facets_say(phrases: int) -> None:
    """In any order, with any common wording and around any title; and hardly any is refused."""
    score: Counter[str] = Counter()
    for one in make(Random(40), 4 * phrases):  # noqa: S311 -- repeatable
        verdict = judge(one)
        assert verdict != "wrong", one
        score[verdict] += 1
    assert score["right"] >= (1 - _MOST_MISSED) * score.total(), score


def test_every_language_has_paraphrases() -> None:
    """A language that is read is tried by the engine as well."""
    assert TONGUES.keys() == LANGUAGES.keys()


@pytest.mark.parametrize(
    ("words", "closest"),
    [
        ("every Monday banana at 9:00", "'every Monday at 9:00': every Monday at 09:00"),
        ("every day at 25:00", None),
        ("varje måndag kl 9:30", None),
    ],
)
def test_a_refusal_names_the_closest_phrase(words: str, closest: str | None) -> None:
    """What is understood without the marked words is shown, and never taken by itself."""
    with pytest.raises(InvalidSchedule) as caught:
        read_schedule(words, now=datetime(2026, 11, 20, tzinfo=UTC), has_title=True)
    assert ("the closest that is understood is" in caught.value.hint) is (closest is not None)
    if closest is not None:
        assert closest in caught.value.hint
