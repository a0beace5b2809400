"""``cloudsched people`` on the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import CommandResult

    People = Callable[..., CommandResult]


def test_a_change_keeps_the_rest(people: People) -> None:
    """What is not named stays, what is cleared is reset, and the webhook's secret is printed once, apart."""
    made = people("set", "ada", "--email", "ada@example.com", "--verified", "--channels", "reminder=email,web")
    assert made.code == 0, made.err
    said = people("set", "ada", "--webhook", "https://example.com/", "--quiet-hours", "22:00-07:00", "--json")
    shown = json.loads(said.out)
    assert shown["email"] == {"address": "ada@example.com", "verified": True}
    assert shown["channels"] == {"REMINDER": ["EMAIL", "WEB"]}
    assert shown["quietHours"] == {"from": "22:00", "until": "07:00"}
    assert "whsec_" in said.err
    assert "whsec_" not in said.out
    people("set", "ada", "--digest", "every day at 8:00", "--clear", "quiet-hours", "--clear", "email")
    printed = people("show", "ada")
    assert "every day at 8:00" in printed.out
    assert "22:00" not in printed.out + printed.err
    assert "ada@example.com" not in printed.out
    assert people("delete", "ada").out == "deleted ada\n"
    assert people("show", "ada").code == 2


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "Name at least one field"),
        (("--verified",), "--verified is about an address"),
        (("--quiet-hours", "10pm-7am"), "write them as 22:00-07:00"),
        (("--channels", "REMINDER"), "write CATEGORY="),
        (("--clear", "owner"), "name one of"),
        (("--email", "ada"), "is not an e-mail address"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(people: People, options: tuple[str, ...], problem: str) -> None:
    """With what to write instead; nothing is stored."""
    said = people("set", "ada", *options)
    assert said.code == 2
    assert problem in said.err
    assert people("show", "ada").code == 2
