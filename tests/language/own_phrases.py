"""Phrases of our own with their answers from a plain walk over the calendar; every third was kept aside from tuning."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from tests.language.walk import (
    FR,
    MO,
    SA,
    SU,
    TH,
    TU,
    WE,
    WEEKEND,
    WORK,
    any_day,
    apart,
    both,
    but,
    dom,
    either,
    every,
    month,
    months_apart,
    nth,
    nth_of,
    walk,
    wd,
    weeks,
)


class Own(NamedTuple):
    """One phrase: its kind, and the next local times where it becomes a schedule."""

    phrase: str
    kind: str
    expected: list[str]
    current: str = ""


def recurring(phrase: str, expected: list[str]) -> Own:
    """A phrase that repeats."""
    return Own(phrase, "recurring", expected)


def once(phrase: str, *expected: str) -> Own:
    """A phrase of single instants."""
    return Own(phrase, "once", [at if len(at) > 16 else f"{at}:00" for at in expected])


def ask(phrase: str) -> Own:
    """A phrase with several readings."""
    return Own(phrase, "ask", [])


def refuse(phrase: str) -> Own:
    """A phrase that means no schedule."""
    return Own(phrase, "refuse", [])


def update(current: str, phrase: str, expected: list[str]) -> Own:
    """A change of a schedule."""
    return Own(phrase, "update", expected, current)


RECURRING = [
    recurring("every weekday at 9 except Fridays", walk(wd(MO, TU, WE, TH), ["09:00"])),
    recurring(
        "the last working day of each quarter at noon", walk(both(nth_of(-1, range(5)), month(3, 6, 9, 12)), ["12:00"])
    ),
    recurring("every day at 7:45am", walk(any_day, ["07:45"])),
    recurring("Mondays at 8:30 pm", walk(wd(MO), ["20:30"])),
    recurring("each Tuesday and Thursday at 18:15", walk(wd(TU, TH), ["18:15"])),
    recurring("weekends at 10", walk(WEEKEND, ["10:00"])),
    recurring("weekdays at 7:00 and weekends at 9:30", sorted(walk(WORK, ["07:00"]) + walk(WEEKEND, ["09:30"]))[:6]),
    recurring("every 2 weeks on Wednesday at 11am", walk(both(wd(WE), weeks(2, "2026-11-25")), ["11:00"])),
    recurring("every other Monday at noon", walk(both(wd(MO), weeks(2, "2026-11-23")), ["12:00"])),
    recurring(
        "every 15 minutes from 9 to 17 on weekdays",
        [f"2026-11-20T10:{m}:00" for m in (30, 45)] + [f"2026-11-20T11:{m:02}:00" for m in (0, 15, 30, 45)],
    ),
    recurring("every 90 minutes", every("", 90)),
    recurring(
        "every half hour between 8am and noon",
        walk(any_day, [f"{h:02}:{m:02}" for h in range(8, 12) for m in (0, 30)] + ["12:00"]),
    ),
    recurring("hourly from 13:00 to 18:00 on Saturdays", walk(wd(SA), [f"{h}:00" for h in range(13, 19)])),
    recurring("on the 5th of every month at 6pm", walk(dom(5), ["18:00"])),
    recurring("the 1st and 15th of each month at 10:30", walk(dom(1, 15), ["10:30"])),
    recurring("every month on the last day at 23:00", walk(dom(-1), ["23:00"])),
    recurring("last Friday of every month at 4pm", walk(nth(-1, FR), ["16:00"])),
    recurring("the second Tuesday of each month at 19:00", walk(nth(2, TU), ["19:00"])),
    recurring("first working day of the month at 8am, every month", walk(nth_of(1, range(5)), ["08:00"])),
    recurring("the first and third Monday of every month at 9am", walk(either(nth(1, MO), nth(3, MO)), ["09:00"])),
    recurring("third business day of each month", walk(nth_of(3, range(5)), ["09:00"])),
    recurring("every year on 24 December at 18:00", walk(both(dom(24), month(12)), ["18:00"])),
    recurring("every March 3rd at noon", walk(both(dom(3), month(3)), ["12:00"])),
    recurring("every 4th of July", walk(both(dom(4), month(7)), ["09:00"])),
    recurring("annually on the 12th of February at 8am", walk(both(dom(12), month(2)), ["08:00"])),
    recurring("every Sunday in July and August at 11:00", walk(both(wd(SU), month(7, 8)), ["11:00"])),
    recurring("daily at 6am, 2pm and 10pm", walk(any_day, ["06:00", "14:00", "22:00"])),
    recurring("every day at 8:15 and 20:45", walk(any_day, ["08:15", "20:45"])),
    recurring("Monday through Thursday at 5:30pm", walk(wd(MO, TU, WE, TH), ["17:30"])),
    recurring("every Wed-Sun at 13:00", walk(wd(WE, TH, FR, SA, SU), ["13:00"])),
    recurring("every day except Sunday at 8am", walk(but(wd(SU)), ["08:00"])),
    recurring("every day but not on weekends at 21:30", walk(WORK, ["21:30"])),
    recurring("every Monday except in August", walk(both(wd(MO), but(month(8))), ["09:00"])),
    recurring("every weekday except Wednesday and Friday at noon", walk(wd(MO, TU, TH), ["12:00"])),
    recurring("every day at 9am except tomorrow", walk(lambda d: d != date(2026, 11, 21), ["09:00"])),
    recurring("every Friday at 15:00 until 18 December", walk(wd(FR), ["15:00"], 9, end=date(2026, 12, 18))),
    recurring("every Monday until the end of January", walk(wd(MO), ["09:00"], 20, end=date(2027, 1, 31))),
    recurring("every day at 7am for 10 days", walk(any_day, ["07:00"], 10)),
    recurring("every Tuesday at 16:00 for 5 weeks", walk(wd(TU), ["16:00"], 5)),
    recurring("every Thursday at 11:00, 4 times", walk(wd(TH), ["11:00"], 4)),
    recurring("starting next Monday, every day at 6:30am", walk(any_day, ["06:30"], start=date(2026, 11, 23))),
    recurring("every 3 days at 8am starting December 1", walk(apart(3, "2026-12-01"), ["08:00"])),
    recurring("every Friday from 1 January 2027 at 17:00", walk(wd(FR), ["17:00"], start=date(2027, 1, 1))),
    recurring("weekly on Mondays and Fridays at 7:20", walk(wd(MO, FR), ["07:20"])),
    recurring("every 2 months on the 10th at 9am", walk(both(dom(10), months_apart(2, "2026-12-01")), ["09:00"])),
    recurring("every six months on the 1st at 12:00", walk(both(dom(1), months_apart(6, "2026-12-01")), ["12:00"])),
    recurring("every quarter on the first day at 8am", walk(both(dom(1), month(1, 4, 7, 10)), ["08:00"])),
    recurring("the first Monday of each quarter at 10am", walk(both(nth(1, MO), month(1, 4, 7, 10)), ["10:00"])),
    recurring("the last day of each year at 23:59", walk(both(dom(31), month(12)), ["23:59"])),
    recurring("the first Sunday in May, every year, at 3pm", walk(both(nth(1, SU), month(5)), ["15:00"])),
    recurring("every other day at 20:00", walk(apart(2, "2026-11-20"), ["20:00"])),
    recurring("twice a day at 8am and 6pm", walk(any_day, ["08:00", "18:00"])),
    recurring("3 times a day at 8:00, 13:00 and 19:00", walk(any_day, ["08:00", "13:00", "19:00"])),
    recurring("once a week on Thursday at 14:30", walk(wd(TH), ["14:30"])),
    recurring("once a month on the 20th at 17:00", walk(dom(20), ["17:00"])),
    recurring("remind me to water the plants every Tuesday and Saturday at 7pm", walk(wd(TU, SA), ["19:00"])),
    recurring("backup the database daily at 02:00", walk(any_day, ["02:00"])),
    recurring("call grandma every Sunday at 4 pm", walk(wd(SU), ["16:00"])),
    recurring('"Monday report" every Friday at 16:30', walk(wd(FR), ["16:30"])),
    recurring("standup meeting weekdays 9:30", walk(WORK, ["09:30"])),
    recurring("every twenty minutes", every("", 20)),
    recurring("every forty-five minutes", every("", 45)),
    recurring("every two hours", every("", 120)),
    recurring("every day at half past eight in the morning", walk(any_day, ["08:30"])),
    recurring("every day at quarter to nine in the evening", walk(any_day, ["20:45"])),
    recurring("every Monday morning at 8", walk(wd(MO), ["08:00"])),
    recurring("every evening at 7", walk(any_day, ["19:00"])),
    recurring("Saturdays at noon", walk(wd(SA), ["12:00"])),
    recurring("every Monday 9am Europe/Paris", walk(wd(MO), ["09:00"])),
    recurring("every day at 15:00 Paris time", walk(any_day, ["15:00"])),
    recurring("every day at 9am New York time", walk(any_day, ["15:00"])),
    recurring("weekdays at 8am in Tokyo", walk(WORK, ["00:00"])),
    recurring("every day at 12:00 UTC", walk(any_day, ["13:00"])),
    recurring("the 10th, 20th and last day of every month at 9am", walk(dom(10, 20, -1), ["09:00"])),
    recurring("second last Friday of each month at 15:00", walk(nth(-2, FR), ["15:00"])),
    recurring("every month on the first Saturday at 10:00", walk(nth(1, SA), ["10:00"])),
    recurring("mondays wednesdays and fridays at 6am", walk(wd(MO, WE, FR), ["06:00"])),
    recurring("every weekend at 8am", walk(WEEKEND, ["08:00"])),
    recurring(
        "on Tuesdays at 10 and on Thursdays at 11", sorted(walk(wd(TU), ["10:00"]) + walk(wd(TH), ["11:00"]))[:8]
    ),
    recurring(
        "every Monday at 8am and every Friday at 5pm", sorted(walk(wd(MO), ["08:00"]) + walk(wd(FR), ["17:00"]))[:8]
    ),
    recurring("every hour from 9am to 5pm, Monday to Friday", walk(WORK, [f"{h:02}:00" for h in range(9, 18)])),
    recurring(
        "every 10 minutes between 22:00 and 23:00", walk(any_day, [f"22:{m:02}" for m in range(0, 60, 10)] + ["23:00"])
    ),
    recurring("every day at 9am in December", walk(month(12), ["09:00"])),
    recurring("every 14 February at 7pm", walk(both(dom(14), month(2)), ["19:00"])),
    recurring("every Christmas Eve at 4pm", walk(both(dom(24), month(12)), ["16:00"])),
    recurring("each weekday at 8:05 p.m.", walk(WORK, ["20:05"])),
    recurring("every third Thursday of the month at 18:00", walk(nth(3, TH), ["18:00"])),
    recurring("every day 17:00 until Friday next week", walk(any_day, ["17:00"], 30, end=date(2026, 11, 27))),
    recurring(
        "every Monday at 9am from March 1 to March 31",
        walk(wd(MO), ["09:00"], 30, start=date(2027, 3, 1), end=date(2027, 3, 31)),
    ),
    recurring("on the last working day of every month at 16:00", walk(nth_of(-1, range(5)), ["16:00"])),
    recurring("every day except the first Monday of the month at 9am", walk(but(nth(1, MO)), ["09:00"])),
    recurring("every day except the 1st of the month at 9am", walk(but(dom(1)), ["09:00"])),
    recurring("every second month on the 3rd at 9am", walk(both(dom(3), months_apart(2, "2026-12-01")), ["09:00"])),
    recurring("every fortnight on Sunday at 18:00", walk(both(wd(SU), weeks(2, "2026-11-22")), ["18:00"])),
    recurring("water plants every 3 weeks on Saturday at 10am", walk(both(wd(SA), weeks(3, "2026-11-21")), ["10:00"])),
    recurring("Every Day At 9AM Please", walk(any_day, ["09:00"])),
    recurring("every monday,wednesday at 9:00 and 14:00", walk(wd(MO, WE), ["09:00", "14:00"])),
    recurring("every day from Monday to Wednesday at 9am", walk(wd(MO, TU, WE), ["09:00"])),
    recurring("every weekday at 9am starting January 4, 2027", walk(WORK, ["09:00"], start=date(2027, 1, 4))),
    recurring("on 1 January and 1 July every year at 9am", walk(both(dom(1), month(1, 7)), ["09:00"])),
]
ONCE = [
    once("in 20 minutes", "2026-11-20T10:37"),
    once("in an hour and a quarter of an hour", "2026-11-20T11:32"),
    once("in 1 hour and 30 minutes", "2026-11-20T11:47"),
    once("in 3 days at 8am", "2026-11-23T08:00"),
    once("in two weeks at noon", "2026-12-04T12:00"),
    once("tomorrow at 14:00", "2026-11-21T14:00"),
    once("tomorrow", "2026-11-21T09:00"),
    once("tomorrow evening", "2026-11-21T18:00"),
    once("tonight at 9", "2026-11-20T21:00"),
    once("today at 5pm", "2026-11-20T17:00"),
    once("on Sunday at 11am", "2026-11-22T11:00"),
    once("Monday at 8am", "2026-11-23T08:00"),
    once("next Tuesday at 10:30", "2026-11-24T10:30"),
    once("on 24 December at 18:00", "2026-12-24T18:00"),
    once("December 31 at 23:30", "2026-12-31T23:30"),
    once("on March 1st, 2027 at 9am", "2027-03-01T09:00"),
    once("2027-02-14 19:00", "2027-02-14T19:00"),
    once("2027-02-14T19:00", "2027-02-14T19:00"),
    once("at 15:30", "2026-11-20T15:30"),
    once("at 9:15 am", "2026-11-21T09:15"),
    once("at noon", "2026-11-20T12:00"),
    once("a week from Monday at 9am", "2026-11-30T09:00"),
    once("two days from now at 16:00", "2026-11-22T16:00"),
    once("the day after tomorrow at 7am", "2026-11-22T07:00"),
    once("on the 25th at 8pm", "2026-11-25T20:00"),
    once("at the end of the month at 17:00", "2026-11-30T17:00"),
    once("the last Friday of December at 15:00", "2026-12-25T15:00"),
    once("the first Monday in February at 9am", "2027-02-01T09:00"),
    once("next week on Thursday at 9am", "2026-11-26T09:00"),
    once("Wednesday next week at 13:00", "2026-11-25T13:00"),
    once("remind me to call the bank tomorrow at 11am", "2026-11-21T11:00"),
    once("remind me on Monday at 9am to pay the rent", "2026-11-23T09:00"),
    once("dentist on 3 December at 14:15", "2026-12-03T14:15"),
    once("pick up the kids today at 16:20", "2026-11-20T16:20"),
    once("in 45 seconds", "2026-11-20T10:17:45"),
    once("in 36 hours", "2026-11-21T22:17"),
    once("Christmas Eve at 5pm", "2026-12-24T17:00"),
    once("5 minutes from now", "2026-11-20T10:22"),
    once("tomorrow at 9am New York time", "2026-11-21T15:00"),
    once("at 18:00 UTC", "2026-11-20T19:00"),
    once("3 days after Christmas at 10am", "2026-12-28T10:00"),
    once("on Feb 29 at 9am", "2028-02-29T09:00"),
    once("quarter past 4 pm tomorrow", "2026-11-21T16:15"),
    once("half past seven in the evening", "2026-11-20T19:30"),
    once("on Saturday morning at 10", "2026-11-21T10:00"),
    once("the 3rd of January at 8:30am", "2027-01-03T08:30"),
    once("Tuesday, 24 November at 9am", "2026-11-24T09:00"),
    once("this Sunday at 10am", "2026-11-22T10:00"),
    once("in a month at 9am", "2026-12-20T09:00"),
    once("two weeks from tomorrow at 8am", "2026-12-05T08:00"),
]
ASK = [
    ask("every second Tuesday"),
    ask("every third Monday at 9am"),
    ask("every day at 5"),
    ask("tomorrow at 3"),
    ask("every Monday at 4:30"),
    ask("on 03/04 at 9am"),
    ask("every 5/6 at noon"),
    ask("biweekly on Friday at 9am"),
    ask("every weekday at 9am CST"),
    ask("on the 31st of every month"),
    ask("on the 30th of each month at 9am"),
    ask("twice a week at 9am"),
    ask("four times a day"),
    ask("Friday at midnight"),
    ask("every Tuesday at midnight"),
    ask("every weekday from 9 to 17"),
    ask("next Saturday at 10am"),
    ask("bimonthly at 9am"),
    ask("every wednsday at 9am"),
    ask("evry day at 9am"),
    ask("every monday at 9am untl june"),
    ask("remind me to call mum evry sunday at 6pm"),
    ask("tomorow at 2"),
]
REFUSE = [
    refuse("yesterday at 9am"),
    refuse("today at 8am"),
    refuse("on 1 January 2020"),
    refuse("every 30 February"),
    refuse("on 31 April at 9am"),
    refuse("every day at 26:00"),
    refuse("at 13:75"),
    refuse("every weekday except Monday to Friday"),
    refuse("every day except holidays"),
    refuse("every month after payday"),
    refuse("3 days after I finish the report"),
    refuse("every now and then"),
    refuse("soon"),
    refuse("sometime next week"),
    refuse("when it rains"),
    refuse("every blue moon"),
    refuse("every Monday at nine-ish o'banana"),
    refuse("every day at 9am excluding my vacation"),
    refuse("every Friday unless it is raining"),
    refuse("every 0 minutes"),
    refuse("until Friday"),
    refuse("for 3 weeks"),
    refuse("except Mondays"),
    refuse("every Monday at 9am at 10am"),
    refuse("every"),
    refuse("at"),
    refuse("please"),
    refuse("call mum"),
    refuse("every Monday banana at 9am"),
    refuse("every 2 weekdays"),
    refuse("every day at 9am on the moon"),
    refuse("every Tuesday or so"),
    refuse("not every Monday"),
    refuse("every Monday at 9am twice removed"),
    refuse("the 45th of every month"),
    refuse("every 3rd Smarch"),
    refuse("weekly report every Monday banana"),
    refuse("5 o'clock somewhere"),
]
_DAILY = "every weekday at 9:00"
UPDATE = [
    update(_DAILY, "make it 10 instead", walk(WORK, ["10:00"])),
    update(_DAILY, "at 11:30 instead", walk(WORK, ["11:30"])),
    update(_DAILY, "change it to 4pm", walk(WORK, ["16:00"])),
    update(_DAILY, "not on Fridays", walk(wd(MO, TU, WE, TH), ["09:00"])),
    update(_DAILY, "also Saturdays", walk(wd(MO, TU, WE, TH, FR, SA), ["09:00"])),
    update(_DAILY, "also on Sundays", walk(wd(MO, TU, WE, TH, FR, SU), ["09:00"])),
    update(_DAILY, "skip the next one", walk(WORK, ["09:00"], start=date(2026, 11, 24))),
    update(_DAILY, "skip tomorrow", walk(WORK, ["09:00"])),
    update(_DAILY, "skip Monday", walk(WORK, ["09:00"], start=date(2026, 11, 24))),
    update(_DAILY, "New York time", walk(WORK, ["15:00"])),
    update(_DAILY, "also at 17:00", walk(WORK, ["09:00", "17:00"])),
    update(_DAILY, "until 4 December", walk(WORK, ["09:00"], 30, end=date(2026, 12, 4))),
    update(_DAILY, "only on Mondays", walk(wd(MO), ["09:00"])),
    update(_DAILY, "make it every other day", walk(apart(2, "2026-11-20"), ["09:00"], start=date(2026, 11, 21))),
    update(_DAILY, "an hour later", walk(WORK, ["10:00"])),
    update(_DAILY, "30 minutes earlier", walk(WORK, ["08:30"])),
    update("every Tuesday at 14:00", "move it to Thursday", walk(wd(TH), ["14:00"])),
    update("every Tuesday at 14:00", "on Wednesdays instead", walk(wd(WE), ["14:00"])),
    update("every Tuesday at 14:00", "Thursdays too", walk(wd(TU, TH), ["14:00"])),
    update("every Tuesday at 14:00", "not in August", walk(both(wd(TU), but(month(8))), ["14:00"])),
    update("every Tuesday at 14:00", "every day instead", walk(any_day, ["14:00"])),
    update("every Tuesday at 14:00", "starting in January", walk(wd(TU), ["14:00"], start=date(2027, 1, 1))),
    update("every day at 8:00 and 20:00", "make it 7:00 and 19:00", walk(any_day, ["07:00", "19:00"])),
    update("tomorrow at 14:00", "make it 3pm", ["2026-11-21T15:00:00"]),
    update("tomorrow at 14:00", "same time next week", ["2026-11-28T14:00:00"]),
    update("tomorrow at 14:00", "on Monday instead", ["2026-11-23T14:00:00"]),
    update("tomorrow at 14:00", "an hour later", ["2026-11-21T15:00:00"]),
    update("last Friday of every month at 17:00", "make it 16:00", walk(nth(-1, FR), ["16:00"])),
    update("every 15 minutes", "every 30 minutes instead", every("", 30)),
]
OWN = RECURRING + ONCE + ASK + REFUSE + UPDATE
HELD_OUT = OWN[2::3]
TUNED = [own for number, own in enumerate(OWN) if number % 3 != 2]
