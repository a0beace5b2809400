"""Which texts are iCalendar files, what their lines are, and what an error says."""

from __future__ import annotations

import re
from datetime import date
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each
from tests.features.calendars.ics_files import FileWriter

from cloudsched.errors import InvalidInput
from cloudsched.features.calendars.ics_days import decode_ics, read_ics_days

NEW_YEAR = date(2027, 1, 1)
EVENT = """BEGIN:VEVENT
UID:{0}
SUMMARY:{0}
DTSTART;VALUE=DATE:2027010{0}
END:VEVENT
"""
THREE = "BEGIN:VCALENDAR\nVERSION:2.0\n" + "".join(map(EVENT.format, (1, 3, 5))) + "END:VCALENDAR\n"
ZONE = """BEGIN:VTIMEZONE
TZID=A
BEGIN:STANDARD
DTSTART;TZID=A:20200101T000000
TZOFFSETFROM:+0100
TZOFFSETTO:+0100
END:STANDARD
END:VTIMEZONE
"""
THREE_DAYS = [(date(2027, 1, day), date(2027, 1, day), str(day)) for day in (1, 3, 5)]


def read(text: str | bytes) -> list[tuple[date, date, str]]:
    return read_ics_days(text if isinstance(text, str) else decode_ics(text), NEW_YEAR)


def refuse(text: str) -> str:
    """Return why a text is refused."""
    with pytest.raises(InvalidInput) as refused:
        read(text)
    return refused.value.problem


def one(*lines: str) -> str:
    return "\n".join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", *lines, "END:VEVENT", "END:VCALENDAR"])


@try_each(
    "before, after, line",
    [
        ("SUMMARY:1\nDTSTART;VALUE=DATE:20270101\nEND:VEVENT\n", "SUMMARY:1\nDTSTART;VALUE=DATE:20270101\n", 7),
        ("SUMMARY:3\nDTSTART;VALUE=DATE:20270103\nEND:VEVENT\n", "SUMMARY:3\nDTSTART;VALUE=DATE:20270103\n", 12),
        ("20270105\nEND:VEVENT", "20270105", 17),
        ("20270105\nEND:VEVENT", "20270105\nEND:VEVNT", 17),
        ("20270103\nEND:VEVENT", "20270103\nEND:VEVENT\nEND:VEVENT", 13),
        ("20270103\nEND:VEVENT", "20270103\nEND:VTODO", 12),
        ("BEGIN:VEVENT\nUID:3", "UID:3", 10),
        ("BEGIN:VEVENT\nUID:3", "BEGIN:VEVENT\nBEGIN:VEVENT\nUID:3", 9),
        ("BEGIN:VEVENT\nUID:1", "  BEGIN:VEVENT\nUID:1", 3),
        (EVENT.format(1), EVENT.format(1).replace("\n", "\n  ").rstrip(" "), 6),
        ("DTSTART;VALUE=DATE:20270103", "\tDTSTART;VALUE=DATE:20270103", 11),
        ("UID:3", "UID:3\nEND:VEVENT\nEND:VCALENDAR\nEND:VCALENDAR", 12),
        ("END:VCALENDAR\n", "", 1),
        ("END:VCALENDAR\n", "END:VCALENDAR\nEND:VCALENDAR\n", 19),
        ("END:VCALENDAR\n", "END:VCALENDAR\nand more\n", 19),
        ("END:VCALENDAR\n", f"END:VCALENDAR\n{EVENT.format(7)}", 19),
        ("END:VCALENDAR\n", "END:VCALENDAR\nSUMMARY:a\n", 19),
        ("END:VCALENDAR\n", "END:VCALENDAR\nBEGIN:VCALENDAR\n", 19),
        ("VERSION:2.0\n", "VERSION:2.0\nBEGIN:VCALENDAR\n", 3),
        ("VERSION:2.0\n", "VERSION:2.0\nBEGIN:VALARM\nEND:VALARM\n", 3),
        ("VERSION:2.0\n", "VERSION:2.0\nBEGIN:STANDARD\nEND:STANDARD\n", 3),
        ("VERSION:2.0\n", "VERSION:2.0\nBEGIN:\nEND:\n", 3),
        ("UID:3\n", "UID:3\nBEGIN:VTIMEZONE\nEND:VTIMEZONE\n", 10),
        ("UID:3\n", "UID:3\nDTSTART\n", 10),
        ("UID:3\n", "UID:3\nDTSTART;VALUE=DATE\n", 10),
        ("UID:3\n", "UID:3\nRRULE FREQ=DAILY\n", 10),
        ("UID:3\n", "UID:3\n20270104\n", 10),
        ("SUMMARY:3\n", "SUMMARY:3\nand more\nRRULE FREQ=DAILY\n", 12),
        ("UID:3\n", "UID:3\nDTSTART:20270104\n", 12),
        ("END:VCALENDAR\n", "RRULE:FREQ=DAILY\nEND:VCALENDAR\n", 18),
        ("VERSION:2.0", "VERSION:1.0", 2),
        ("SUMMARY:3", "SUMMARY;ENCODING=QUOTED-PRINTABLE:J=C3=A4nner", 10),
        ("SUMMARY:3", "X-A;CHARSET=UTF-8;encoding=quoted-printable:J=C3=A4=\n nner", 10),
    ],
)
def test_a_broken_structure_is_refused_with_its_line(before: str, after: str, line: int) -> None:
    """What does not end, ends twice, is in the wrong place, or is no line at all would take other lines with it."""
    assert read(THREE) == THREE_DAYS
    assert before in THREE
    for end in ("\n", "\r\n", "\r"):
        assert f"line {line}:" in refuse(THREE.replace(before, after).replace("\n", end))


ENDS = re.compile(r"(?:BEGIN|END):.*")


@cache
def write(seed: int) -> tuple[list[str], list[tuple[date, date, str]]]:
    """Return the lines of a file, and its days."""
    text = FileWriter(seed).write()
    return text.splitlines(), read(text)


@given(seed=st.integers(0, 20), data=st.data())
def test_a_file_whose_structure_changes_is_refused_or_means_the_same(seed: int, data: st.DataObject) -> None:
    """Whichever BEGIN or END is dropped, said twice, renamed or swapped with another one."""
    lines, days = write(seed)
    places = [number for number, line in enumerate(lines) if ENDS.fullmatch(line)]
    at, other = data.draw(st.sampled_from(places)), data.draw(st.sampled_from(places))
    match data.draw(st.sampled_from(("drop", "repeat", "swap", "rename", "indent"))):
        case "drop":
            changed = lines[:at] + lines[at + 1 :]
        case "repeat":
            changed = [*lines[:at], lines[at], *lines[at:]]
        case "swap":
            changed = list(lines)
            changed[at], changed[other] = lines[other], lines[at]
        case "rename":
            changed = [*lines[:at], f"{lines[at][:-1]}X", *lines[at + 1 :]]
        case _:
            changed = [*lines[:at], f" {lines[at]}", *lines[at + 1 :]]
    try:
        found = read("\n".join(changed))
    except InvalidInput as error:
        refused = error.problem
    else:
        assert found == days
        return
    assert refused.startswith("line ") or at == 0, refused


@try_each(
    "line, problem",
    [
        ("RRULE:FREQ=DAILY;INTERVAL=0", "INTERVAL"),
        ("RRULE:FREQ=DAILY;UNTL=20270107", "UNTL"),
        ("RRULE:FREQ=DAILY;COUNT=999999999", "COUNT"),
        ("EXRULE:FREQ=DAILY;COUNT=-1", "COUNT"),
        ("RDATE:20270230", "20270230"),
        ("RDATE:2027-01-09", "2027-01-09"),
        ("RDATE:20270101T0900", "20270101T0900"),
        ("RDATE:20270101T240000", "20270101T240000"),
        ("RDATE: 2027 101", "2027 101"),
        ("RDATE:tomorrow", "TOMORROW"),
        ("RDATE:20270101T090000+0100", "20270101T090000+0100"),
        ("EXDATE:20271301", "20271301"),
        ("RDATE;VALUE=PERIOD:20270101T090000Z/x", "X"),
        ("RDATE;VALUE=PERIOD:20270101T090000Z/PT1W", "PT1W"),
        ("DTEND:20270230", "20270230"),
        ("DTEND:", "an empty date"),
        ("DURATION:", "duration"),
        ("DURATION:P1H", "P1H"),
    ],
)
def test_one_bad_event_is_named_with_its_line(line: str, problem: str) -> None:
    """The file is refused as a whole, so that no day is lost in silence; the error says which event to correct."""
    for name, label in (("SUMMARY:Stock-taking", "'Stock-taking'"), ("UID:7@example.org", "'7@example.org'")):
        said = refuse(one(name, "DTSTART:20270101", line))
        assert said.startswith(f"line 5: {label} ")
        assert problem in said


@try_each(
    "start, problem, line",
    [
        ("DTSTART:20270230", "20270230", 4),
        ("DTSTART:2027-01-09", "2027-01-09", 4),
        ("DTSTART:T0900", "T0900", 4),
        ("DTSTART:20270109,20270110", "20270109,20270110", 4),
        ("DTSTART:20270109T0900", "T0900", 4),
        ("DTSTART:20270109T240000", "T240000", 4),
        ("DTSTART:", "an empty date", 4),
        ("X-START:20270109", "no DTSTART", 2),
        ("DTSTART;TZID=Own:20270109T090000", "offset", 4),
    ],
)
def test_a_bad_start_is_named_with_its_line(start: str, problem: str, line: int) -> None:
    """One that is missing, too. A zone that the file defines wrongly is named if an event uses it."""
    zone = "BEGIN:VTIMEZONE\nTZID:Own\nBEGIN:STANDARD\nDTSTART:20200101T000000\nEND:STANDARD\nEND:VTIMEZONE\n"
    if "TZID" in start:
        text = one("DTSTART:20270109").replace("END:VCALENDAR", f"{zone}END:VCALENDAR")
        assert read(text)
        said = refuse(text.replace("DTSTART:20270109", start))
        assert "'Own' has an offset" in said
    else:
        said = refuse(one("SUMMARY:Stock-taking", start))
        assert said.startswith(f"line {line}: 'Stock-taking' ")
        assert problem in said


@try_each(
    "lines",
    [
        ["SUMMARY:a\u2028b", "DTSTART:20270101"],
        ["SUMMARY:a\x85b\x0cc\x0bd\x1ce", "DTSTART:20270101"],
        ["DESCRIPTION:END:VEVENT", "DTSTART:20270101"],
        ['ATTENDEE;MEMBER="mailto:a","mailto:b";CN=x:mailto:c', "DTSTART:20270101"],
        ['DTSTART;X="a:b;c","d,e":20270101'],
        ["dtstart;value=date:20270101"],
        ["DtStart:20270101t000000z"],
        ["DTSTART:20270101T235960Z"],
        ["DTSTART:2027", "\t0101"],
        ["DTSTA", " RT:20270101"],
        ["DTSTART:20270101", "", "", " T090000"],
        ["", "DTSTART:20270101", "   ", ""],
        ["DTSTART:20270101", "RRULE:", "EXDATE:", "RDATE:20270101,"],
        ["DTSTART:20270101", "TRANSP:TRANSPARENT"],
        ["DTSTART:20270101", "SUMMARY:" + "\\;" * 300],
        ["DTSTART:20270101", "SUMMARY;LANGUAGE=fr:a", "SUMMARY;LANGUAGE=en:b"],
        ["DTSTART:20270101", "BEGIN:VALARM", "DTSTART:bad", "TRIGGER:-PT5M", "END:VALARM"],
        ["DTSTART:20270101", "BEGIN:X-OWN", "BEGIN:X-OTHER", "END:X-OTHER", "END:X-OWN"],
        ["DTSTART:20270101", "begin:valarm", "End:VAlarm"],
        ["SUMMARY:a", "and b", "", "Bring: c", "End of it", "DTSTART:20270101"],
        ["DTSTART:20270101", "DTSTAMP:20260101T000000Z", "DTSTAMP:20260102T000000Z", "SEQUENCE:2", "SEQUENCE:2"],
        ["DTSTART;TZID=A:20270101T090000", "END:VEVENT", *ZONE.splitlines(), "BEGIN:VEVENT", "DTSTART:20270101"],
    ],
)
def test_legal_lines_are_read(lines: list[str]) -> None:
    """Whatever ends lines elsewhere, parameters of several values, lower case, folds at any place, parts of others.

    So is what programs export wrongly: a text with line breaks, a line twice, `TZID=` for `TZID:`, and a zone that
    names itself.
    """
    for end in ("\n", "\r\n", "\r", "\r\r\n"):
        text = one(*lines).replace("\n", end)
        assert [found[:2] for found in read(text)] == [(NEW_YEAR, NEW_YEAR)], repr(end)
    mixed = one(*lines).replace("\n", "\r\n", 2) + "\n\n"
    assert [found[:2] for found in read(mixed)] == [(NEW_YEAR, NEW_YEAR)]


def test_calendars_of_one_file_are_read_one_after_the_other() -> None:
    """Each has its own zones. A comment of a cache may be between and behind them."""
    assert read(THREE + "X-COMMENT:cached\n\n" + THREE.replace(":5", ":7").replace("0105", "0107")) == [
        *THREE_DAYS,
        (date(2027, 1, 7), date(2027, 1, 7), "7"),
    ]


@try_each(
    "content",
    [
        b"{}",
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        "\ufeff{}".encode("utf-16-le"),
        "\ufeff{}".encode("utf-16-be"),
    ],
)
def test_a_byte_order_mark_says_what_a_file_is_written_in(content: bytes) -> None:
    """UTF-8 and UTF-16 are read alike."""
    encoding = "utf-8" if b"\x00" not in content else "utf-16-le" if content.startswith(b"\xff") else "utf-16-be"
    text = one("DTSTART:20270101", "SUMMARY:Jänner… €")
    whole = content.replace("{}".encode(encoding), text.encode(encoding))
    assert read(whole) == [(NEW_YEAR, NEW_YEAR, "Jänner… €")]


@try_each("encoding, name", [("cp1252", "Jänner… €"), ("latin-1", "Jänner"), ("latin-1", "J\x81nner")])
def test_a_file_of_windows_is_read(encoding: str, name: str) -> None:
    """One that is not UTF-8 is in Windows' code page for Western Europe, or in Latin-1."""
    assert read(one("DTSTART:20270101", f"SUMMARY:{name}").encode(encoding)) == [(NEW_YEAR, NEW_YEAR, name)]


@given(name=st.text(st.sampled_from("aä€😀"), min_size=1, max_size=30), width=st.integers(1, 9))
def test_a_fold_may_split_a_character(name: str, width: int) -> None:
    """Many programs fold after a number of octets, whatever they are. The lines keep their numbers."""
    octets = f"SUMMARY:{name}".encode()
    pieces = [octets[at : at + width] for at in range(0, len(octets), width)]
    text = one("{}", "DTSTART:20270101").encode().replace(b"\n", b"\r\n")
    for fold in (b"\r\n ", b"\n\t"):
        assert read(text.replace(b"{}", fold.join(pieces))) == [(NEW_YEAR, NEW_YEAR, name)]
    bad = text.replace(b"{}", b"\r\n ".join(pieces)).replace(b"20270101", b"x")
    assert f"line {3 + len(pieces)}: " in refuse(decode_ics(bad))
