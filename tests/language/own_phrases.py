"""Our own phrases; expected times come from a plain walk over the calendar."""

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
    WORK,
    any_day,
    apart,
    both,
    but,
    dom,
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


def recur(phrase: str, expected: list[str]) -> Own:
    """Expect a phrase to repeat, with these next local times."""
    return Own(phrase, "recurring", expected)


def occur(phrase: str, *expected: str) -> Own:
    """Expect a phrase to mean exactly these local times."""
    return Own(phrase, "once", [at if len(at) > 16 else f"{at}:00" for at in expected])


def ask(phrase: str) -> Own:
    return Own(phrase, "ask", [])


def refuse(phrase: str) -> Own:
    return Own(phrase, "refuse", [])


def update(current: str, phrase: str, expected: list[str]) -> Own:
    """Expect a change of ``current`` to give these next local times."""
    return Own(phrase, "update", expected, current)


RECURRING = [
    recur("on every Friday morning at 9", walk(wd(FR), ["09:00"])),
    recur("every weekday at 9 except Fridays", walk(wd(MO, TU, WE, TH), ["09:00"])),
    recur("every other Monday at noon", walk(both(wd(MO), weeks(2, "2026-11-23")), ["12:00"])),
    recur(
        "every 15 minutes from 9 to 17 on weekdays",
        [f"2026-11-20T10:{m}:00" for m in (30, 45)] + [f"2026-11-20T11:{m:02}:00" for m in (0, 15, 30, 45)],
    ),
    recur(
        "every half hour between 8am and noon",
        walk(any_day, [f"{h:02}:{m:02}" for h in range(8, 12) for m in (0, 30)] + ["12:00"]),
    ),
    recur("hourly from 13:00 to 18:00 on Saturdays", walk(wd(SA), [f"{h}:00" for h in range(13, 19)])),
    recur("first working day of the month at 8am, every month", walk(nth_of(1, range(5)), ["08:00"])),
    recur("every 4th of July", walk(both(dom(4), month(7)), ["09:00"])),
    recur("every Monday except in August", walk(both(wd(MO), but(month(8))), ["09:00"])),
    recur("every day at 9am except tomorrow", walk(lambda d: d != date(2026, 11, 21), ["09:00"])),
    recur("every Monday until the end of January", walk(wd(MO), ["09:00"], 20, end=date(2027, 1, 31))),
    recur("every day at 7am for 10 days", walk(any_day, ["07:00"], 10)),
    recur("every Tuesday at 16:00 for 5 weeks", walk(wd(TU), ["16:00"], 5)),
    recur("every six months on the 1st at 12:00", walk(both(dom(1), months_apart(6, "2026-12-01")), ["12:00"])),
    recur("every quarter on the first day at 8am", walk(both(dom(1), month(1, 4, 7, 10)), ["08:00"])),
    recur("the last day of each year at 23:59", walk(both(dom(31), month(12)), ["23:59"])),
    recur("the first Sunday in May, every year, at 3pm", walk(both(nth(1, SU), month(5)), ["15:00"])),
    recur("once a month on the 20th at 17:00", walk(dom(20), ["17:00"])),
    recur('"Monday report" every Friday at 16:30', walk(wd(FR), ["16:30"])),
    recur("every forty-five minutes", every("", 45)),
    recur("every day at quarter to nine in the evening", walk(any_day, ["20:45"])),
    recur("second last Friday of each month at 15:00", walk(nth(-2, FR), ["15:00"])),
    recur("mondays wednesdays and fridays at 6am", walk(wd(MO, WE, FR), ["06:00"])),
    recur("on Tuesdays at 10 and on Thursdays at 11", sorted(walk(wd(TU), ["10:00"]) + walk(wd(TH), ["11:00"]))[:8]),
    recur("every Christmas Eve at 4pm", walk(both(dom(24), month(12)), ["16:00"])),
    recur("every day 17:00 until Friday next week", walk(any_day, ["17:00"], 30, end=date(2026, 11, 27))),
    recur(
        "every Monday at 9am from March 1 to March 31",
        walk(wd(MO), ["09:00"], 30, start=date(2027, 3, 1), end=date(2027, 3, 31)),
    ),
    recur("every day except the first Monday of the month at 9am", walk(but(nth(1, MO)), ["09:00"])),
    recur("every fortnight on Sunday at 18:00", walk(both(wd(SU), weeks(2, "2026-11-22")), ["18:00"])),
    recur("every day from Monday to Wednesday at 9am", walk(wd(MO, TU, WE), ["09:00"])),
    recur("on 1 January and 1 July every year at 9am", walk(both(dom(1), month(1, 7)), ["09:00"])),
]
ONCE = [
    occur("in an hour and a quarter of an hour", "2026-11-20T11:32"),
    occur("tomorrow", "2026-11-21T09:00"),
    occur("2027-02-14 19:00", "2027-02-14T19:00"),
    occur("at 9:15 am", "2026-11-21T09:15"),
    occur("a week from Monday at 9am", "2026-11-30T09:00"),
    occur("the day after tomorrow at 7am", "2026-11-22T07:00"),
    occur("at the end of the month at 17:00", "2026-11-30T17:00"),
    occur("the first Monday in February at 9am", "2027-02-01T09:00"),
    occur("3 days after Christmas at 10am", "2026-12-28T10:00"),
    occur("quarter past 4 pm tomorrow", "2026-11-21T16:15"),
    occur("Tuesday, 24 November at 9am", "2026-11-24T09:00"),
]
ASK = [
    ask("every second Tuesday"),
    ask("biweekly on Friday at 9am"),
    ask("every weekday at 9am CST"),
    ask("on the 30th of each month at 9am"),
    ask("twice a week at 9am"),
    ask("Friday at midnight"),
    ask("every weekday from 9 to 17"),
    ask("next Saturday at 10am"),
    recur("every tuesady and thrsday at 9am", walk(wd(TU, TH), ["09:00"])),
    ask("evry Monday at 9am"),
    ask("every monday at 9am untl june"),
]
REFUSE = [
    refuse("yesterday at 9am"),
    refuse("every 30 February"),
    refuse("every day at 26:00"),
    refuse("every weekday except Monday to Friday"),
    refuse("every day except holidays"),
    refuse("every month after payday"),
    refuse("3 days after I finish the report"),
    refuse("soon"),
    refuse("every Monday at nine-ish on bananaday"),
    refuse("every Friday unless it is raining"),
    refuse("every 0 minutes"),
    refuse("until Friday"),
    refuse("except Mondays"),
    refuse("every"),
    refuse("please"),
    refuse("call mum"),
    refuse("every Monday sproing"),
    refuse("every 2 weekdays"),
    refuse("not every Monday"),
    refuse("the 45th of every month"),
]
_DAILY = "every weekday at 9:00"
UPDATE = [
    update(_DAILY, "also Saturdays", walk(wd(MO, TU, WE, TH, FR, SA), ["09:00"])),
    update(_DAILY, "skip the next one", walk(WORK, ["09:00"], start=date(2026, 11, 24))),
    update(_DAILY, "skip Monday", walk(WORK, ["09:00"], start=date(2026, 11, 24))),
    update(_DAILY, "until 4 December", walk(WORK, ["09:00"], 30, end=date(2026, 12, 4))),
    update(_DAILY, "only on Mondays", walk(wd(MO), ["09:00"])),
    update(_DAILY, "make it every other day", walk(apart(2, "2026-11-20"), ["09:00"], start=date(2026, 11, 21))),
    update(_DAILY, "an hour later", walk(WORK, ["10:00"])),
    update("every Tuesday at 14:00", "move it to Thursday", walk(wd(TH), ["14:00"])),
    update("every Tuesday at 14:00", "starting in January", walk(wd(TU), ["14:00"], start=date(2027, 1, 1))),
    update("tomorrow at 14:00", "make it 3pm", ["2026-11-21T15:00:00"]),
    update("tomorrow at 14:00", "same time next week", ["2026-11-28T14:00:00"]),
    update("tomorrow at 14:00", "on Monday instead", ["2026-11-23T14:00:00"]),
    update("every 15 minutes", "every 30 minutes instead", every("", 30)),
]
OWN = RECURRING + ONCE + ASK + REFUSE + UPDATE
