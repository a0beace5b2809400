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


def ask(text: str, locale: str | None = "en", *, has_title: bool = True) -> Reading:
    return read(text, now=NOW_AWARE, timezone=ZONE, locale=locale, has_title=has_title)


@try_each(
    "phrase, locale, description, title",
    [
        ("run the backup nightly at 3am", "en", "every day at 03:00", "run the backup"),
        ("nightly backup at 02:30", "en", "every day at 02:30", "nightly backup"),
        ("always on Tuesday at 9am", "en", "every Tuesday at 09:00", None),
        ("regularly on Tuesday at 9am", "en", "every Tuesday at 09:00", None),
        ("täglich um 9 Uhr an Wochentagen", "de", "every weekday at 09:00", None),
        ("every day at 9am check the backups", "en", "every day at 09:00", "check the backups"),
        ("jeweils am Montag um 9 Uhr", "de", "every Monday at 09:00", None),
        ("allabendlich um 20 Uhr", "de", "every day at 20:00", None),
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
        ("毎週月曜日 9:30", "en", "other-language", "毎週月曜日"),
        ("immer am Montag um 9", "en", "other-language", "immer"),
        ("every Monday at 9", "de", "other-language", "every"),
        ("after work every day", "en", "not-understood", "after"),
        ("if it rains tomorrow at 9", "en", "not-understood", "if"),
        ("zweimonatlich am 1. um 9 Uhr", "de", "not-understood", "zweimonatlich"),
        ("mehrmals täglich um 9 Uhr", "de", "not-understood", None),
        ("rapport mensuelles 9:00", "en", "not-understood", "mensuelles"),
        ("Black Friday at 9am", "en", "not-understood", None),
        ("beim Sonnenuntergang am Freitag", "de", "half-known", "Sonnenuntergang"),
        ("call Bob on matchday at 9", "en", "not-understood", "matchday"),
        ("Müll raus am Abfuhrtag um 9 Uhr", "de", "not-understood", "Abfuhrtag"),
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
        ("every 0 minutes", "no-interval", "cannot be scheduled .*every 5 minutes"),
        ("alle 0 Minuten", "no-interval", "lässt sich nicht planen .*alle 5 Minuten"),
        ("every 100 milliseconds", "too-short", "cannot be scheduled .*every second"),
        ("30 February at 9:00", "no-such-date", "cannot be scheduled .*check the day"),
        ("yesterday at 9:00", "past", "cannot be scheduled .*still to come"),
    ],
)
def test_what_is_understood_and_cannot_be_is_not_called_unread(phrase: str, code: str, shown: str) -> None:
    """It is refused for what it is, in every language, and what can be is shown."""
    reading = ask(phrase, None)
    assert (reading.kind, reading.problems[0].code) == ("refusal", code)
    with pytest.raises(InvalidSchedule, match=shown):
        read_schedule(phrase, now=datetime(2026, 11, 20, tzinfo=UTC), has_title=True)


@try_each(
    "phrase, name",
    [
        ("tous les lundis à 9h", "French"),
        ("elke maandag om 9 uur", "Dutch"),
        ("todas as segundas às 9", "Portuguese"),
        ("月曜日の9時に", "Japanese"),
        ("every day at 9:00 heure de Londres", "French"),
        ("every day at 9:00 hora de Londres", "Spanish"),
        ("rapport quotidien 9:00", "French"),
        ("informe trimestral 9:00", "Spanish"),
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
    assert "Die Wörter wurden als Deutsch gelesen." in german.assumptions
    assert not any("read as" in each for each in english.assumptions)


def test_quotes_allow_words_about_time() -> None:
    """A title may have such words where it is quoted."""
    assert ask('"Daily Sunset" every Monday at 9:00').title == "Daily Sunset"
    assert ask("Daily Sunset every Monday at 9:00").schedule is None


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
    alone, _ = with_schedule({"schedule": "ring Bob every Monday at 9:00"}, now=NOW_AWARE, default_time=at)
    assert alone["title"] == "ring Bob"


UNKNOWABLE = [
    ("en", "before the meeting", "when I get home", "at sunset", "in a bit", "after lunch", "once I arrive"),
    ("de", "vor dem Meeting", "wenn ich heimkomme", "bei Sonnenuntergang", "in Kürze", "nach dem Essen", "gleich"),
]
"""Times that depend on an event or on nothing that is said, in each language the same."""
FRAMES = {
    "en": ("{}", "call Bob {}", "remind me {} to call Bob", "call Bob {} tomorrow", "call Bob tomorrow {}"),
    "de": ("{}", "Bob anrufen {}", "erinnere mich {} an Bob", "Bob anrufen {} am Freitag", "Bob anrufen morgen {}"),
}


@try_each(
    "locale, phrase",
    [(locale, frame.format(when)) for locale, *times in UNKNOWABLE for when in times for frame in FRAMES[locale]],
)
def test_a_time_that_cannot_be_known_is_never_another(locale: str, phrase: str) -> None:
    """Neither the default time nor a title takes its place: of a new schedule, and of the change of one."""
    current = ask("every Friday at 17:00").schedule
    for has_title in (True, False):
        assert ask(phrase, locale, has_title=has_title).kind == "refusal"
    changed = read(phrase, now=NOW_AWARE, timezone=ZONE, locale=locale, current=current)
    assert changed.kind == "refusal"


@try_each(
    "phrase, locale, title",
    [
        ("brush teeth before bed every day at 21:00", "en", "brush teeth before bed"),
        ("after-work drinks on Saturday", "en", "after-work drinks"),
        ("check if the backups ran every day", "en", "check if the backups ran"),
        ("Kehren vor der Tür am Samstag", "de", "Kehren vor der Tür"),
    ],
)
def test_a_title_may_speak_of_events(phrase: str, locale: str, title: str) -> None:
    """Beside a time of day that is said, or where the words mean no time."""
    assert ask(phrase, locale).title == title


ORDERS = [
    ("en", "Cancel my reminder on Monday"),
    ("en", "stop reminding me to stretch on Tuesdays"),
    ("en", "don't remind me to stretch on Tuesdays"),
    ("en", "can you turn off the alarm on Mondays?"),
    ("de", "Lösche meine Erinnerung am Montag"),
    ("de", "ändere meinen Wecker auf 7 Uhr morgen"),
    ("de", "verschiebe Stretch auf Montag"),
    ("en", "what do I have tomorrow at 9?"),
    ("de", "was habe ich morgen um 9?"),
]


@try_each("locale, phrase", ORDERS)
def test_a_change_a_cancellation_and_a_question_are_no_new_schedule(locale: str, phrase: str) -> None:
    """With the language given, and found out."""
    for language in (locale, None):
        reading = ask(phrase, language)
        assert reading.kind == "refusal", (language, reading)


@try_each(
    "phrase, locale, title",
    [
        ("delete the old logs every day at 3am", "en", "delete the old logs"),
        ("change the filter every Monday at 9:00", "en", "change the filter"),
        ("remind me to cancel my alarm on Friday at 9:00", "en", "cancel my alarm"),
        ('"Cancel my reminder" on Monday at 9:00', "en", "Cancel my reminder"),
        ("lösche alte Logs täglich um 3 Uhr", "de", "lösche alte Logs"),
        ("can you remind me to call mum tomorrow at 9?", "en", "call mum"),
    ],
)
def test_work_that_changes_something_is_a_task(phrase: str, locale: str, title: str) -> None:
    """What is asked for is the work, unless the words say that it is a task."""
    reading = ask(phrase, locale)
    assert reading.kind == "schedule", reading
    assert reading.title == title


@try_each(
    "phrase, locale, zone",
    [
        ("meet Bob in London tomorrow at 9am", "en", "Europe/London"),
        ("remind me tomorrow at 9am in London to meet Bob", "en", "Europe/London"),
        ("Treffen in London morgen um 9 Uhr", "de", "Europe/London"),
        ("standup tomorrow at 9am London", "en", "Europe/London"),
    ],
)
def test_a_place_beside_a_title_is_asked_about(phrase: str, locale: str, zone: str) -> None:
    """It may be where something happens, at the user's time, or a zone. Its words stay in the title."""
    reading = ask(phrase, locale)
    assert reading.kind == "question", reading
    assert [each.schedule.timezone for each in reading.readings] == [ZONE, zone]
    place = phrase[slice(*reading.problems[0].span)]
    assert str(reading.title).endswith(place)


@try_each(
    "phrase, locale, title",
    [
        ("wet the lawn every day at 9am", "en", "wet the lawn"),
        ("Arzt ist am Montag um 15 Uhr", "de", "Arzt ist"),
    ],
)
def test_a_word_that_is_also_a_zone_is_a_word(phrase: str, locale: str, title: str) -> None:
    reading = ask(phrase, locale)
    assert reading.schedule is not None
    assert (reading.schedule.timezone, reading.title) == (ZONE, title)


@try_each(
    "phrase, locale, zone",
    [
        ("meet Bob tomorrow at 9am London time", "en", "Europe/London"),
        ("meet Bob in Paris tomorrow at 9am", "en", ZONE),
        ("morgen um 9 Ortszeit in Tokio", "de", "Asia/Tokyo"),
    ],
)
def test_a_zone_that_is_named_as_one_is_used(phrase: str, locale: str, zone: str) -> None:
    """As is a place without a title; the user's own zone leaves nothing to ask."""
    reading = ask(phrase, locale)
    assert reading.schedule is not None, reading
    assert reading.schedule.timezone == zone


@try_each(
    "phrase, locale, place",
    [
        ("morgen um 9 Uhr Ortszeit in Narnia", "de", "Ortszeit in Narnia"),
        ("täglich um 9 Uhr Narniaer Zeit", "de", "Narniaer"),
        ("täglich um 9 Uhr an Schultagen", "de", "Schultagen"),
        ("tomorrow at 9 Narnia time", "en", "Narnia"),
    ],
)
def test_what_stands_behind_a_time_is_no_title_by_a_preposition_alone(phrase: str, locale: str, place: str) -> None:
    """A zone or a day that is not known is not what the task is about."""
    reading = ask(phrase, locale)
    assert reading.kind == "refusal", reading
    assert reading.problems[0].words == place


@try_each("phrase, locale", [("regularly at 9", "en"), ("regelmäßig um 9", "de")])
def test_regularly_is_not_daily(phrase: str, locale: str) -> None:
    """It says that something repeats, and not how often."""
    assert [each.code for each in ask(phrase, locale).problems] == ["no-recurrence"]


@try_each(
    "phrase, meaning",
    [
        ("twice a day", "every day at 09:00 and 18:00"),
        ("in June at 10", "every Friday in June at 10:00"),
        ("only until June", "every Friday at 17:00, until 2027-05-31"),
        ("same time on Mondays", "every Monday at 17:00"),
        ("drop the evening one", "say what to change"),
    ],
)
def test_a_change_drops_nothing_that_it_says(phrase: str, meaning: str) -> None:
    """Not the times, the months, the end, or what it is about: what cannot be done is refused."""
    before = ask("every Friday at 15:00" if "evening" in phrase else "every Friday at 17:00").schedule
    reading = read(phrase, now=NOW_AWARE, timezone=ZONE, current=before)
    schedule = reading.schedule or (reading.readings and reading.readings[0].schedule)
    assert meaning in str(reading) or (schedule and schedule.describe().startswith(meaning))


@try_each(
    "current, phrase, locale, times",
    [
        ("17:00", "at 9:30 instead of 17:00", "en", ["09:30"]),
        ("17:00", "9 rather than 17", "en", ["09:00"]),
        ("17:00", "make it 9 rather than 17", "en", ["09:00"]),
        ("20:00", "at 7:30 instead of 20:00", "en", ["07:30"]),
        ("17:00", "um 9 statt um 17 Uhr", "de", ["09:00"]),
        ("17:00 and 20:00", "at 9:30 instead of 17:00", "en", ["09:30", "20:00"]),
    ],
)
def test_one_time_in_the_place_of_another(current: str, phrase: str, locale: str, times: list[str]) -> None:
    """It is in the half of the day that is said, and the other times stay."""
    before = ask(f"every Friday at {current}").schedule
    assert before is not None
    reading = read(phrase, now=NOW_AWARE, timezone=ZONE, locale=locale, current=before)
    assert reading.schedule is not None, reading
    found = {f"{at.astimezone(load_tzinfo(ZONE)):%H:%M}" for at in reading.schedule.upcoming(NOW_AWARE, 4)}
    assert sorted(found) == times


@try_each(
    "phrase, locale, description",
    [
        ("move it from Friday to Monday", "en", "every Monday at 17:00"),
        ("please change it from 17 to 9", "en", "every Friday at 09:00"),
        ("verschiebe es von Freitag auf Montag", "de", "every Monday at 17:00"),
        ("make it from Monday to Friday", "en", "every weekday at 17:00"),
    ],
)
def test_from_one_to_another_is_no_range_of_what_is_moved(phrase: str, locale: str, description: str) -> None:
    """To "move" names what there was; to "make" names all that is to be."""
    before = ask("every Friday at 17:00").schedule
    reading = read(phrase, now=NOW_AWARE, timezone=ZONE, locale=locale, current=before)
    assert reading.schedule is not None, reading
    assert reading.schedule.describe() == f"{description}, {ZONE}"
    elsewhere = read("move it from Tuesday to Monday", now=NOW_AWARE, timezone=ZONE, current=before)
    assert elsewhere.kind == "refusal"


def test_a_change_of_nothing_is_told() -> None:
    """A day on which it does not run can be left out, and nothing is different then."""
    before = ask("every Monday at 9:00").schedule
    reading = read("not on Fridays", now=NOW_AWARE, timezone=ZONE, current=before)
    assert "The schedule does not run then, so nothing changes." in reading.assumptions


@try_each(
    "phrase, locale, count",
    [
        ("skip the next three", "en", 3),
        ("cancel the next two", "en", 2),
        ("überspringe die nächsten drei", "de", 3),
        ("sla de volgende over", "nl", 1),
        ("lass die nächsten drei aus", "de", None),
        ("skip the next three reports", "en", None),
        ("move the next three to Monday", "en", None),
    ],
)
def test_as_many_are_skipped_as_are_said(phrase: str, locale: str, count: int | None) -> None:
    """Or none: where that is not understood, it is refused."""
    before = ask("every Friday at 17:00").schedule
    assert before is not None
    reading = read(phrase, now=NOW_AWARE, timezone=ZONE, locale=locale, current=before)
    if count is None:
        assert reading.kind == "refusal", reading
        return
    assert reading.schedule is not None, reading
    assert reading.schedule.upcoming(NOW_AWARE, 3) == before.upcoming(NOW_AWARE, 3 + count)[count:]
