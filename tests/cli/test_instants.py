"""Every command that takes an instant reads it alike."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import click
import pytest
from click.testing import CliRunner
from tests.cases import try_each

from cloudsched.cli.main import cloudsched
from cloudsched.cli.options import parse_instant
from cloudsched.emulator.cli import read_instant

COMMANDS = {
    "emulator": ("emulator", "--port", "0", "--freeze", "{}"),
    "dev": ("dev", "--port", "0", "--freeze", "{}"),
    "next": ("next", "FREQ=DAILY", "--after", "{}"),
    "create": ("tasks", "--url", "http://127.0.0.1:9", "create", "T", "--owner", "o", "--handler", "h", "--at", "{}"),
    "why": ("tasks", "--url", "http://127.0.0.1:9", "why", "t", "--at", "{}"),
    "backfill": ("tasks", "--url", "http://127.0.0.1:9", "backfill", "t", "{}", "2027-01-01T00:00:00Z"),
}
NOON = datetime(2027, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize("text", ["yesterday", "2027-13-01T00:00:00Z", "7", "0001-01-01T00:00:00+23:59", "x" * 500])
@try_each("command", COMMANDS.values())
def test_what_is_not_an_instant_is_refused_with_the_same_words(command: tuple[str, ...], text: str) -> None:
    """Before anything is started or sent; the words say how to write one."""
    result = CliRunner().invoke(cloudsched, [word.format(text) for word in command])
    said = " ".join(result.output.split())
    assert result.exit_code == 2
    assert f"{text[:40]!r} is not an instant; write it like 2027-01-31T09:00:00Z." in said


def read_with_zone(text: str) -> datetime:
    return parse_instant(text, None, "--at")


@pytest.mark.parametrize("read", [read_instant, read_with_zone])
def test_a_local_time_needs_a_zone(read: Callable[[str], datetime]) -> None:
    with pytest.raises(click.UsageError, match=r"'2027-01-31T12:00:00' has no time zone; end it with Z for UTC"):
        read("2027-01-31T12:00:00")


def test_a_local_time_is_read_in_its_zone() -> None:
    """Across the zone's offset, and out of a gap of its clocks."""
    assert parse_instant("2027-01-31T13:00:00", "Europe/Paris", "--at") == NOON
    assert parse_instant("2027-03-28T02:30:00", "Europe/Paris", "--at") == datetime(2027, 3, 28, 1, 30, tzinfo=UTC)
