"""Times of day in the notations of both languages."""

from __future__ import annotations

from itertools import product

from tests.cases import try_each
from tests.language.test_cases import HERE, list_local_times
from tests.language.walk import FR, NOW, SA, ZONE, any_day, walk, wd

from cloudsched.language import Reading, read


def ask(phrase: str, locale: str) -> Reading:
    return read(phrase, now=NOW.replace(tzinfo=HERE), timezone=ZONE, locale=locale)


_FORMS = ("{}:{:02}", "{}:{:02} Uhr", "{}.{:02} Uhr")


@try_each("hour, minute, form", product(range(24), (0, 5, 30, 59), _FORMS))
def test_german_hours_with_minutes_are_on_the_24_hour_clock(hour: int, minute: int, form: str) -> None:
    """Nobody is asked whether "5:50" is in the morning, and "abends" still makes it 17:50."""
    said = form.format(hour, minute)
    plain = walk(any_day, [f"{hour:02}:{minute:02}"], 4)
    assert list_local_times(ask(f"jeden Tag um {said}", "de"), 4) == plain
    if 6 <= hour < 12:
        evening = walk(any_day, [f"{hour + 12}:{minute:02}"], 4)
        assert list_local_times(ask(f"jeden Tag um {said} abends", "de"), 4) == evening
        assert list_local_times(ask(f"jeden Abend um {said}", "de"), 4) == evening


@try_each(
    "phrase, locale",
    [
        ("every day at 12:00 midnight", "en"),
        ("every day at 12 midnight", "en"),
        ("every day at 00:00 midnight", "en"),
        ("every night at 12", "en"),
        ("jeden Tag um 12 Uhr nachts", "de"),
        ("jeden Tag um zwölf Uhr nachts", "de"),
        ("jede Nacht um 12 Uhr", "de"),
        ("nachts um 12 Uhr", "de"),
        ("jeden Tag um 12 Uhr in der Nacht", "de"),
        ("jeden Tag um 0:00 Uhr Mitternacht", "de"),
        ("jeden Tag um 12 Uhr Mitternacht", "de"),
    ],
)
def test_twelve_at_night_is_midnight(phrase: str, locale: str) -> None:
    assert list_local_times(ask(phrase, locale), 4) == walk(any_day, ["00:00"], 4)


@try_each(
    "phrase, locale",
    [("every day at 12:00 noon", "en"), ("täglich um zwölf Uhr mittags", "de"), ("täglich um 12", "de")],
)
def test_twelve_at_noon_stays_noon(phrase: str, locale: str) -> None:
    assert list_local_times(ask(phrase, locale), 4) == walk(any_day, ["12:00"], 4)


@try_each(
    "phrase, locale, at",
    [
        ("every day at quarter to one lunch", "en", "12:45"),
        ("every night at quarter to one backup", "en", "00:45"),
        ("every day at quarter to one am", "en", "00:45"),
        ("jeden Tag um halb eins Mittagessen", "de", "12:30"),
        ("jeden Tag um fünf nach halb eins", "de", "12:35"),
        ("elke dag om half 1 lunchen", "nl", "12:30"),
        ("elke nacht om half 1", "nl", "00:30"),
    ],
)
def test_what_is_before_one_is_after_noon_unless_the_night_is_said(phrase: str, locale: str, at: str) -> None:
    assert list_local_times(ask(phrase, locale), 4) == walk(any_day, [at], 4)


@try_each("phrase", ["elke dag om 3 uur thee", "dinsdag 2 uur studeren", "om een uur lunchen"])
def test_an_early_hour_in_dutch_is_asked_about(phrase: str) -> None:
    """People say "3 uur" for both, and "2 uur" is a length as well."""
    assert [each.code for each in ask(phrase, "nl").problems] == ["bare-hour"]


@try_each("phrase, locale", [("fridays at 12 at night", "en"), ("freitags um 12 Uhr nachts", "de")])
def test_the_midnight_of_a_day_is_asked(phrase: str, locale: str) -> None:
    """As for "Friday at midnight": it may be the one at the start of the day, or at its end."""
    found = [list_local_times(Reading("schedule", each.schedule), 4) for each in ask(phrase, locale).readings]
    assert found == [walk(wd(FR), ["00:00"], 4), walk(wd(SA), ["00:00"], 4)]


@try_each("phrase, locale", [("täglich um 12 Uhr morgens", "de"), ("täglich um 12 Uhr abends", "de")])
def test_twelve_in_the_morning_or_evening_is_not_taken_for_noon(phrase: str, locale: str) -> None:
    assert ask(phrase, locale).kind != "schedule"


@try_each(
    "phrase, locale",
    [
        ("pills every day 8am 2pm and 8pm", "en"),
        ("every day at 8am 2pm 8pm", "en"),
        ("every day at 8:00 14:00 20:00", "en"),
        ("jeden Tag um 8 Uhr 14 Uhr und 20 Uhr", "de"),
        ("jeden Tag 8:00 14:00 20:00 Tabletten", "de"),
    ],
)
def test_times_side_by_side_are_a_list(phrase: str, locale: str) -> None:
    assert list_local_times(ask(phrase, locale), 8) == walk(any_day, ["08:00", "14:00", "20:00"])


@try_each(
    "phrase, locale",
    [
        ("at 9am 1500 steps every day", "en"),
        ("every day 9am 10 minutes of meditation", "en"),
        ("um 9 Uhr 2 Tabletten nehmen jeden Tag", "de"),
    ],
)
def test_a_number_behind_a_time_is_no_other_time(phrase: str, locale: str) -> None:
    assert list_local_times(ask(phrase, locale), 4) == walk(any_day, ["09:00"], 4)


@try_each("phrase", ["morgen um 20 Uhr 15 Tatort gucken", "morgen um 20 Uhr 15 Pflanzen gießen"])
def test_a_number_of_minutes_before_a_title_is_asked_about(phrase: str) -> None:
    """It may also count what the title names."""
    found = [list_local_times(Reading("schedule", each.schedule), 2) for each in ask(phrase, "de").readings]
    assert {at[11:16] for [at] in found} == {"20:00", "20:15"}


@try_each(
    "phrase, times",
    [
        ("tomorrow at 10 to 5pm leave for the train", {"10:00", "16:50"}),
        ("tomorrow at 10 to 5 leave for the train", {"10:00", "04:50", "16:50"}),
        ("tomorrow at 5 to 6pm", {"17:00", "17:55"}),
        ("tomorrow at 20 to 8", {"20:00", "07:40"}),
    ],
)
def test_minutes_to_an_hour_and_a_window_are_told_apart_by_a_question(phrase: str, times: set[str]) -> None:
    """It begins at ten, or is ten minutes before five."""
    found = [list_local_times(Reading("schedule", each.schedule), 2) for each in ask(phrase, "en").readings]
    assert {at[11:16] for [at] in found} == times


@try_each("phrase, at", [("every day at 25 to 6pm", "17:35"), ("every day at 10 before 5pm", "16:50")])
def test_minutes_to_an_hour_that_are_no_window(phrase: str, at: str) -> None:
    assert list_local_times(ask(phrase, "en"), 4) == walk(any_day, [at], 4)
