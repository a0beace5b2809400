"""The score on phrases that people typed, collected next to the checkout, and on our own phrases."""

from __future__ import annotations

from collections import Counter
from zoneinfo import ZoneInfo

import pytest
from tests.cases import try_each
from tests.language.breadth_phrases import BREADTH
from tests.language.collected_phrases import CASES, judge, parse_now
from tests.language.german_phrases import GERMAN_PHRASES
from tests.language.own_phrases import OWN, Own
from tests.language.walk import NOW, ZONE

from cloudsched.language import Reading, read

AIMS = {"recurring": 0.98, "once": 0.95, "update": 0.95, "refuse": 0.99, "ask": 1.0}
MOST_WRONG = 0.005
HERE = ZoneInfo(ZONE)


def test_the_score_over_the_collected_phrases(capsys: pytest.CaptureFixture[str]) -> None:
    """Nearly all firm phrases are read correctly, and hardly any is silently wrong."""
    score: Counter[tuple[bool, str, str]] = Counter()
    for case in CASES:
        reading = read(case["phrase"], now=parse_now(case), timezone=case["zone"])
        score[case["firm"], case["kind"], judge(case, reading.schedule)] += 1
    kinds = sorted({(firm, kind) for firm, kind, _ in score}, reverse=True)
    with capsys.disabled():
        for firm, kind in kinds:
            figures = {verdict: score[firm, kind, verdict] for verdict in ("right", "wrong", "refused")}
            print("\nfirm" if firm else "\nsoft", kind, figures, end="")  # noqa: T201 -- the score is the point
    for firm, kind in kinds:
        total = sum(score[firm, kind, verdict] for verdict in ("right", "wrong", "refused"))
        if firm:
            assert score[True, kind, "right"] >= AIMS[kind] * total, kind
            assert score[True, kind, "wrong"] <= MOST_WRONG * total, kind


def list_local_times(reading: Reading, count: int) -> list[str]:
    assert reading.schedule is not None, reading
    found = reading.schedule.upcoming(NOW.replace(tzinfo=HERE), count)
    return [at.astimezone(HERE).replace(tzinfo=None).isoformat() for at in found]


def check(own: Own, locale: str = "en") -> None:
    """Read a phrase of our own and compare it with the walk over the calendar."""
    now = NOW.replace(tzinfo=HERE)
    current = read(own.current, now=now, timezone=ZONE).schedule if own.current else None
    reading = read(own.phrase, now=now, timezone=ZONE, locale=locale, current=current)
    if own.kind == "ask":
        assert reading.kind == "question", reading
        assert reading.readings, reading
        return
    if own.kind == "refuse":
        assert reading.kind != "schedule", reading
        return
    ends = len(own.expected) not in {6, 8}  # the walk lists six or eight, and fewer only where there are no more
    assert list_local_times(reading, len(own.expected) + ends) == own.expected


@try_each("own", OWN + BREADTH)
def test_a_phrase_of_our_own(own: Own) -> None:
    """The phrase names what a plain walk over the calendar names; ambiguity is asked back, nonsense refused."""
    check(own)


@try_each("own", GERMAN_PHRASES)
def test_a_german_phrase(own: Own) -> None:
    """A second language needs only a lexicon."""
    check(own, "de")
