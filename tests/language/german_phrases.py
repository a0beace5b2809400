"""German phrases with their answers from a plain walk over the calendar."""

from __future__ import annotations

from datetime import date

from tests.language.own_phrases import Own, occur, recur
from tests.language.walk import (
    MO,
    SU,
    TU,
    WE,
    WEEKEND,
    WORK,
    any_day,
    apart,
    both,
    month,
    nth_of,
    walk,
    wd,
    weeks,
)

GERMAN_PHRASES = [
    recur("montags und mittwochs um 7 Uhr 30", walk(wd(MO, WE), ["07:30"])),
    recur("alle zwei Stunden von 8 bis 18 Uhr", walk(any_day, ["08:00", "10:00", "12:00", "14:00", "16:00", "18:00"])),
    recur("alle zwei Wochen am Dienstag um 10 Uhr", walk(both(wd(TU), weeks(2, "2026-11-24")), ["10:00"])),
    recur("jeden zweiten Tag um 20 Uhr", walk(apart(2, "2026-11-20"), ["20:00"])),
    recur("am letzten Arbeitstag jedes Monats um 16 Uhr", walk(nth_of(-1, range(5)), ["16:00"])),
    recur("jeden Montag um 9 Uhr bis zum 31. Januar", walk(wd(MO), ["09:00"], 20, end=date(2027, 1, 31))),
    recur("dreimal täglich um 8, 13 und 19 Uhr", walk(any_day, ["08:00", "13:00", "19:00"])),
    recur("täglich um halb neun", walk(any_day, ["08:30"])),
    recur("Montag bis Freitag um Viertel nach acht", walk(WORK, ["08:15"])),
    recur("jeden Sonntag im Juli um 11 Uhr", walk(both(wd(SU), month(7)), ["11:00"])),
    recur("werktags um 7:00 und wochenends um 9:30", sorted(walk(WORK, ["07:00"]) + walk(WEEKEND, ["09:30"]))[:6]),
    recur("jeden Dienstag um fünf Uhr nachmittags", walk(wd(TU), ["17:00"])),
    occur("übermorgen um 8 Uhr", "2026-11-22T08:00"),
    occur("heute Abend um acht", "2026-11-20T20:00"),
    occur("am 3.4. um 9 Uhr", "2027-04-03T09:00"),
    Own("morgen um 3", "ask", []),
    Own("am 31. jedes Monats", "ask", []),
    Own("jeden Tag außer an Feiertagen", "refuse", []),
    Own("jeden Montag Banane", "refuse", []),
    Own("jeden Tag um 25 Uhr", "refuse", []),
    Own("every Monday at 9", "refuse", []),
]
