"""Days of which one may be meant: "the 5th or 6th of October", "at the weekend"."""

from __future__ import annotations

from tests.cases import try_each
from tests.language.test_cases import HERE
from tests.language.walk import NOW, WEEKEND, ZONE, walk

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


_SATURDAY, _SUNDAY = "2026-11-21T11:00:00", "2026-11-22T11:00:00"
_LEADS = [("", "en"), ("brunch ", "en"), ("", "de"), ("Brunch ", "de")]
_WEEKEND = {"en": ("at the weekend at 11am", "on the weekend at 11am", "this weekend at 11am"), "de": ()}
_WEEKEND["de"] = ("am Wochenende um 11 Uhr", "dieses Wochenende um 11 Uhr")


@try_each("lead, locale", _LEADS)
def test_a_weekend_in_the_singular_is_asked(lead: str, locale: str) -> None:
    """Its Saturday or its Sunday may be meant, or both; and if it is not this one, each weekend."""
    for weekend in _WEEKEND[locale]:
        answers = list_answers(f"{lead}{weekend}", locale)
        assert answers[:3] == [[_SATURDAY], [_SUNDAY], [_SATURDAY, _SUNDAY]], weekend
        assert answers[3:] in ([], [walk(WEEKEND, ["11:00"], 6)]), weekend


@try_each(
    "phrase, locale",
    [
        ("every weekend at 11am", "en"),
        ("at weekends at 11am", "en"),
        ("on the weekend at 11am every week", "en"),
        ("every day at 11am at the weekend", "en"),
        ("immer am Wochenende um 11 Uhr", "de"),
        ("jedes Wochenende um 11 Uhr", "de"),
    ],
)
def test_weekends_that_repeat_are_asked_about_no_more(phrase: str, locale: str) -> None:
    now = NOW.replace(tzinfo=HERE)
    schedule = read(phrase, now=now, timezone=ZONE, locale=locale).schedule
    assert schedule is not None
    found = [at.astimezone(HERE).replace(tzinfo=None).isoformat() for at in schedule.upcoming(now, 8)]
    assert found == walk(WEEKEND, ["11:00"])
