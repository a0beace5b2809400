"""Words that say when are no part of a title without a question: a day, what a time counts from, a limit."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from tests.cases import try_each

from cloudsched.language import Reading, read

ENGLISH = datetime(2027, 9, 14, 15, 40, tzinfo=ZoneInfo("Europe/London"))  # a Tuesday
GERMAN = datetime(2027, 6, 10, 8, 15, tzinfo=ZoneInfo("Europe/Berlin"))  # a Thursday


def ask(phrase: str, locale: str) -> Reading:
    if locale == "en":
        return read(phrase, now=ENGLISH, timezone="Europe/London", locale="en")
    return read(phrase, now=GERMAN, timezone="Europe/Berlin", locale="de")


@try_each(
    "phrase, locale, first, title",
    [
        ("on friday drinks at 6pm", "en", "09-17 18:00", "drinks"),
        ("thursday dentist 3pm", "en", "09-16 15:00", "dentist"),
        ("christmas lunch at 1pm", "en", "12-25 13:00", "lunch"),
        ("mondays gym 6pm", "en", "09-20 18:00", "gym"),
        ("weekdays gym 6pm", "en", "09-14 18:00", "gym"),
        ("Montag Arzt um 15 Uhr", "de", "06-14 15:00", "Arzt"),
        ("5.7. Arzt um 15 Uhr", "de", "07-05 15:00", "Arzt"),
        ("Kino am Freitagabend um 20 Uhr", "de", "06-11 20:00", "Kino"),
        ("Montagabend um 8 Chor", "de", "06-14 20:00", "Chor"),
        ("every Friday at 5pm play Friday Night Magic", "en", "09-17 17:00", "play Friday Night Magic"),
        ("every Sunday at 8pm Sunday Night Football", "en", "09-19 20:00", "Sunday Night Football"),
        ("every Monday at 10.15: stand-up", "en", "09-20 10:15", "stand-up"),
        ("täglich um 7.45: Tabletten", "de", "06-11 07:45", "Tabletten"),
        ("am 24.12: Geschenke", "de", "12-24 09:00", "Geschenke"),
        ("pay 45€ at noon", "en", "09-15 12:00", "pay 45€"),
        ("year in review on friday at 6pm", "en", "09-17 18:00", "year in review"),
        ("Tag der offenen Tür am Montag um 15 Uhr", "de", "06-14 15:00", "Tag der offenen Tür"),
        ("movie night on friday at 8pm", "en", "09-17 20:00", "movie night"),
        ("lunch with June on Thursday at 12:30", "en", "09-16 12:30", "lunch with June"),
        ("second breakfast at 7am", "en", "09-15 07:00", "second breakfast"),
        ("review last week's numbers on Monday at 9:30", "en", "09-20 09:30", "review last week's numbers"),
        ("night shift every Monday at 10pm", "en", "09-20 22:00", "night shift"),
        ("half-hour nap at 4pm", "en", "09-14 16:00", "half-hour nap"),
        ("run the nightly backup at 3am", "en", "09-15 03:00", "the nightly backup"),
        ("Termin mit Herrn Freitag jeden Montag um 10 Uhr", "de", "06-14 10:00", "Termin mit Herrn Freitag"),
        ("Herrn Freitag um 15 Uhr zurückrufen", "de", "06-10 15:00", "Herrn Freitag zurückrufen"),
        ("Geburtstag von Jan jedes Jahr am 3. Mai", "de", "05-03 09:00", "Geburtstag von Jan"),
        ("jeden Abend um 21 Uhr Erste-Hilfe-Kurs", "de", "06-10 21:00", "Erste-Hilfe-Kurs"),
    ],
)
def test_a_day_before_a_title_is_when_it_runs(phrase: str, locale: str, first: str, title: str) -> None:
    reading = ask(phrase, locale)
    now = ENGLISH if locale == "en" else GERMAN
    assert reading.schedule is not None, reading
    assert reading.schedule.upcoming(now, 1)[0].astimezone(now.tzinfo).strftime("%m-%d %H:%M") == first
    assert reading.title == title


@try_each(
    "phrase, locale",
    [
        ("call bob an hour before 6pm tomorrow", "en"),
        ("be home before 6pm", "en"),
        ("call bob after friday 9am", "en"),
        ("call bob in 2 days time at 9am", "en"),
        ("every hour overnight drink", "en"),
        ("every day at 8am alternate weeks pack lunch", "en"),
        ("every 4 hours as needed aspirin", "en"),
        ("monday's meeting at 9am", "en"),
        ("don't remind me on monday at 9am", "en"),
        ("cancel tomorrow's 9am", "en"),
        ("move gym from monday to friday at 9am", "en"),
        ("move gym to 6am on mondays", "en"),
        ("what happens at 9am tomorrow", "en"),
        ("is bob free at 9am tomorrow", "en"),
        ("remind me at 6pm to buy a gift for christmas", "en"),
        ("plan next week every day at 9", "en"),
        ("tomorrow morning at 5pm", "en"),
        ("every evening at 7am", "en"),
        ("morgens um 15 Uhr", "de"),
        ("heute Abend um 2", "de"),
        ("nachmittags um 23 Uhr", "de"),
        ("täglich um 15 Uhr mit Ausnahme vom 21.6.", "de"),
        ("abgesehen von Montag täglich um 15 Uhr", "de"),
        ("spätestens um 15 Uhr", "de"),
        ("every Monday at 9,30 tea", "en"),
        ("every Monday at 9.30/10.30 tea", "en"),
        ("tomorrow at 9:15.30 tea", "en"),
        ("now and then call mum", "en"),
        ("call mum now and then", "en"),
        ("movie night every monday at 10:00", "en"),
        ("every thursday at 8pm except april 2 christmas shopping", "en"),
        ("Montag bzw. Dienstag um 15 Uhr", "de"),
        ("daily standup on Friday", "en"),
        ("nightly backup every Monday at 10:00", "en"),
        ("at 7am 2h workout", "en"),
        ("2h workout on Monday", "en"),
        ("football Sunday every two weeks on Monday at 9am", "en"),
        ("date night", "en"),
        ("I paid the plumber on Monday at 9", "en"),
        ("rent paid on Monday", "en"),
        ("call him Friday the 18th", "en"),
        ("nächtliche Sicherung jeden Montag um 10:00", "de"),
        ("1000 Euro überweisen am 15. jedes Monats", "de"),
        ("Miete bezahlt am Montag", "de"),
    ],
)
def test_what_may_say_when_is_not_left_to_the_title(phrase: str, locale: str) -> None:
    """It is asked or refused. A schedule without these words would run at another time than they say."""
    assert ask(phrase, locale).schedule is None
