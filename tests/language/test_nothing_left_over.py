"""No word about time is left over: it belongs to the schedule, or the phrase is refused with the word marked."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.cases import try_each
from tests.language.walk import NOW, ZONE

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.errors import InvalidInput, InvalidSchedule
from cloudsched.language import Reading, read, read_schedule
from cloudsched.language.languages import LANGUAGES
from cloudsched.language.task_fields import with_schedule

NOW_AWARE = NOW.replace(tzinfo=load_tzinfo(ZONE))


def ask(text: str, locale: str | None = "en", titles: tuple[str, ...] | None = ()) -> Reading:
    return read(text, now=NOW_AWARE, timezone=ZONE, locale=locale, titles=titles)


@try_each(
    "phrase, locale, description, title",
    [
        ("nightly at 1am", "en", "every day at 01:00", None),
        ("run the backup nightly at 3am", "en", "every day at 03:00", "the backup"),
        ("nightly backup at 02:30", "en", "every day at 02:30", "nightly backup"),
        ("always on Tuesday at 9am", "en", "every Tuesday at 09:00", None),
        ("recurring meeting Tuesday at 9am", "en", "every Tuesday at 09:00", "recurring meeting"),
        ("Weekly team meeting Tuesdays 10:00 am", "en", "every Tuesday at 10:00", "Weekly team meeting"),
        ("every day at 9am check the backups", "en", "every day at 09:00", "check the backups"),
        ("manual check on Mondays at 9am", "en", "every Monday at 09:00", "manual check"),
        ("immer am Montag um 9 Uhr", "de", "every Monday at 09:00", None),
        ("jeweils am Montag um 9 Uhr", "de", "every Monday at 09:00", None),
        ("allabendlich um 20 Uhr", "de", "every day at 20:00", None),
        ("täglicher Bericht um 9 Uhr", "de", "every day at 09:00", "täglicher Bericht"),
        ("morgens und abends um 8", "de", "every day at 08:00; and every day at 20:00", None),
        ("in ungeraden Kalenderwochen montags um 9 Uhr und um 10 Uhr", "de", None, None),
    ],
)
def test_a_repetition_is_not_once(phrase: str, locale: str, description: str | None, title: str | None) -> None:
    """How often is understood, whichever word says it and wherever it stands."""
    reading = ask(phrase, locale)
    assert reading.schedule is not None, reading
    assert not reading.schedule.is_one_time
    assert reading.title == title
    if description is not None:
        assert reading.schedule.describe() == f"{description}, {ZONE}"


@try_each(
    "phrase, locale, code, place",
    [
        ("sunset every day", "en", "half-known", "sunset"),
        ("remind me on my birthday, May 15", "en", "half-known", "my birthday"),
        ("Chaque lundi à 9:30", "en", "other-language", "Chaque"),
        ("varje måndag kl 9:30", "en", "other-language", "varje"),
        ("amanhã às 9:30", "en", "other-language", "amanhã"),
        ("毎週月曜日 9:30", "en", "other-language", "毎週月曜日"),
        ("каждый понедельник в 9:30", "en", "other-language", "каждый"),
        ("immer am Montag um 9", "en", "other-language", "immer"),
        ("every Monday at 9", "de", "other-language", "every"),
        ("after work every day", "en", "not-understood", "after"),
        ("if it rains tomorrow at 9", "en", "not-understood", "if"),
        ("every Monday at 9 unless raining", "en", "not-understood", "unless"),
        ("biennial audit May 1 at 9am", "en", "not-understood", "biennial"),
        ("zweimonatlich am 1. um 9 Uhr", "de", "not-understood", "zweimonatlich"),
        ("stundenweise um 9 Uhr", "de", "not-understood", "stundenweise"),
        ("mehrmals täglich um 9 Uhr", "de", "not-understood", None),
        ("Black Friday at 9am", "en", "not-understood", None),
        ("today was fun", "en", "not-understood", None),
        ("beim Sonnenuntergang am Freitag", "de", "half-known", "Sonnenuntergang"),
    ],
)
def test_what_is_not_understood_is_marked(phrase: str, locale: str, code: str, place: str | None) -> None:
    """A word about time that cannot be understood is refused by name, and never becomes a title."""
    reading = ask(phrase, locale)
    assert reading.kind == "refusal", reading
    assert reading.problems[0].code == code
    if place is not None:
        assert phrase[slice(*reading.problems[0].span)] == place


@try_each(
    "phrase, code, shown",
    [
        ("every 0 minutes", "no-interval", "every 5 minutes"),
        ("every 0 days at 9:00", "no-interval", "every 5 minutes"),
        ("alle 0 Minuten", "no-interval", "every 5 minutes"),
        ("every 100 milliseconds", "too-short", "every second"),
        ("every 100ms", "too-short", "every second"),
        ("alle 100 Millisekunden", "too-short", "every second"),
        ("toutes les 100 millisecondes", "too-short", "every second"),
        ("cada 100 milisegundos", "too-short", "every second"),
        ("30 February at 9:00", "no-such-date", "check the day"),
        ("yesterday at 9:00", "past", "still to come"),
    ],
)
def test_what_is_understood_and_cannot_be_is_not_called_unread(phrase: str, code: str, shown: str) -> None:
    """It is refused for what it is, in every language, and what can be is shown."""
    reading = ask(phrase, None)
    assert (reading.kind, reading.problems[0].code) == ("refusal", code)
    with pytest.raises(InvalidSchedule, match=f"cannot be scheduled .*{shown}"):
        read_schedule(phrase, now=datetime(2026, 11, 20, tzinfo=UTC), has_title=True)


@try_each(
    "phrase, name",
    [
        ("ogni lunedì alle 9", "Italian"),
        ("elke maandag om 9 uur", "Dutch"),
        ("todas as segundas às 9", "Portuguese"),
        ("jeden Montag um 9 Uhr", "German"),
        ("月曜日の9時に", "Japanese"),
        ("매주 월요일 9시", "Korean"),
    ],
)
def test_another_language_is_named(phrase: str, name: str) -> None:
    """A phrase in another language is refused by that language's name."""
    reading = ask(phrase)
    assert reading.problems[0].code == "other-language"
    assert name in reading.problems[0].hint


def test_the_language_is_found_out() -> None:
    """Without a locale the words tell the language, and that is said; the first language needs no saying."""
    german, english = ask("jeden Montag um 9 Uhr", None), ask("every Monday at 9:00", None)
    assert german.schedule is not None
    assert german.schedule == english.schedule
    assert "The words were read as German." in german.assumptions
    assert not any("read as" in each for each in english.assumptions)


def test_quotes_and_titles_of_tasks_allow_words_about_time() -> None:
    """A title may have such words where it is quoted, or where a task is so titled."""
    assert ask('"Daily Sunset" every Monday at 9:00').title == "Daily Sunset"
    assert ask("Daily Sunset every Monday at 9:00").schedule is None
    assert ask("daily sunset every Monday at 9:00", titles=("Daily Sunset",)).title == "daily sunset"


def test_every_language_watches_over_the_others() -> None:
    """No word of one language that says how often or which day ends in a title of another."""
    for language in LANGUAGES.values():
        for other in LANGUAGES.values():
            if other is language:
                continue
            days = [words[0][0] for each in other.entries.values() for words in each if words[1] == "weekday"]
            for day in days:
                if len(day) > 3 and day not in language.entries:
                    reading = ask(f"{day} 9:30", language.code)
                    assert reading.kind == "refusal", (language.code, day)


def test_a_birthday_without_a_year_is_asked_about() -> None:
    """What happens every year is not silently once."""
    reading = ask("Mum's birthday on May 15 at 9:00")
    assert reading.kind == "question"
    assert reading.problems[0].code == "once-or-repeat"


def test_beside_a_title_no_word_is_left_over() -> None:
    """Where the task has a title, a schedule's text may have none, since it would be lost."""
    at = NOW_AWARE.time().replace(hour=9, minute=0)
    with_title = {"title": "Call", "schedule": "ring Bob every Monday at 9:00"}
    with pytest.raises(InvalidInput, match="not understood"):
        with_schedule(with_title, now=NOW_AWARE, default_time=at)
    alone = with_schedule({"schedule": "ring Bob every Monday at 9:00"}, now=NOW_AWARE, default_time=at)
    assert alone["title"] == "ring Bob"
