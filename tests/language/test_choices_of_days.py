"""Days of which one may be meant: "the 5th or 6th of October", "at the weekend"."""

from __future__ import annotations

from tests.cases import try_each
from tests.language.test_cases import HERE
from tests.language.walk import NOW, ZONE

from cloudsched.language import read


def list_answers(phrase: str, locale: str) -> list[list[str]]:
    """Return the first local times of each answer to the question that a phrase raises."""
    now = NOW.replace(tzinfo=HERE)
    reading = read(phrase, now=now, timezone=ZONE, locale=locale)
    assert reading.kind == "question", reading
    found = [each.schedule.upcoming(now, 6) for each in reading.readings]
    return [[at.astimezone(HERE).replace(tzinfo=None).isoformat() for at in times] for times in found]


_FIFTH, _SIXTH = "2027-10-05T09:00:00", "2027-10-06T09:00:00"


@try_each(
    "phrase, locale",
    [
        ("see tom at 9:00 on the 5th or 6th of october", "en"),
        ("on october 5 or october 6 at 9:00 see tom", "en"),
        ("5 or 6 october 2027 at 9:00", "en"),
        ("am 5. oder 6. Oktober um 9 Uhr", "de"),
        ("am 5.10. oder am 6.10. um 9 Uhr Tom treffen", "de"),
    ],
)
def test_one_date_or_another_is_asked(phrase: str, locale: str) -> None:
    """The answers are either day, and both."""
    assert list_answers(phrase, locale) == [[_FIFTH], [_SIXTH], [_FIFTH, _SIXTH]]


@try_each(
    "phrase, locale",
    [
        ("on monday or tuesday at 9:00", "en"),
        ("on the 23rd or 24th at 9:00", "en"),
        ("am Montag oder Dienstag um 9", "de"),
    ],
)
def test_one_day_or_another_is_asked(phrase: str, locale: str) -> None:
    """Each of them may be meant alone, and once."""
    answers = list_answers(phrase, locale)
    assert answers[:2] == [["2026-11-23T09:00:00"], ["2026-11-24T09:00:00"]]
    assert len(answers[-1]) == 6
