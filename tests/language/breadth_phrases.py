"""Phrases as people write them, by class: each was refused or read wrongly once."""

from __future__ import annotations

from tests.language.own_phrases import ask, occur, recur, refuse, update
from tests.language.walk import FR, MO, TU, WE, any_day, both, dom, walk, wd

BREADTH = [
    # the same days and times, in other orders and other words
    recur("at 1700 hours every Friday", walk(wd(FR), ["17:00"])),
    recur("every mon/wed/fri at 9am", walk(wd(MO, WE, FR), ["09:00"])),
    recur("every Friday at 1:30 in the afternoon", walk(wd(FR), ["13:30"])),
    recur("mornings and evenings at 8", walk(any_day, ["08:00", "20:00"])),
    # days of the month
    recur("every Friday the 13th at 9am", walk(both(dom(13), wd(FR)), ["09:00"], count=6)),
    recur(
        "the first Monday on or after the 10th of each month at 9am", walk(both(wd(MO), dom(*range(10, 17))), ["09:00"])
    ),
    ask("month end at 5pm"),
    # one-off
    occur("in an hour and a half", "2026-11-20T11:47"),
    occur("8.30pm today", "2026-11-20T20:30"),
    occur("next month on the 3rd at 8am", "2026-12-03T08:00"),
    occur("in four business days at 9am", "2026-11-26T09:00"),
    occur("a week today at 9am", "2026-11-27T09:00"),
    occur("Ash Wednesday at 9am", "2027-02-10T09:00"),
    occur("the 27 at 9am", "2026-11-27T09:00"),
    ask("next week at 9am"),
    ask("EOD every weekday"),
    ask("midnight on New Year's Eve"),
    refuse("sunset every day"),
    # changes
    update("every Monday at 9:00", "skip next week", walk(wd(MO), ["09:00"], count=9)[1:]),
    update("every Monday at 9:00", "skip the next three", walk(wd(MO), ["09:00"], count=11)[3:]),
    update("every Monday at 9:00", "stop after 3 times", walk(wd(MO), ["09:00"], count=3)),
    update("every Monday at 9:00", "at 9:30 instead of 9", walk(wd(MO), ["09:30"])),
    update("every Monday at 9:00", "Tuesdays instead of Mondays", walk(wd(TU), ["09:00"])),
]
