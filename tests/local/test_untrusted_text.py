"""Text from users is shown on a terminal without what could control the terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudsched.local.untrusted_text import safe_output, to_json_line, to_printable

letters = st.characters() | st.sampled_from("\x1b\x07\x7f\x9b\u202e\u2066\ud800\r\n\t")
texts = st.text(letters, max_size=200)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(texts)
def test_any_text_becomes_one_printable_line_of_the_same_letters(text: str) -> None:
    """Only what cannot be printed is replaced, and the line can be written in UTF-8."""
    shown = to_printable(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    assert all(now == before for now, before in zip(shown, text, strict=True) if before.isprintable())
    shown.encode()


@given(values)
def test_json_is_printable_and_means_the_same(value: object) -> None:
    """Programs read the very value that the API sent, although nothing in the line can control a terminal."""
    line = to_json_line(value)
    assert line.isprintable()
    assert json.loads(line) == value


def test_a_character_that_the_output_lacks_becomes_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    """As JSON has it, so that JSON can still be read."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", out)
    with safe_output():
        print(to_json_line({"title": "Café 🍵"}))  # noqa: T201 - as a command does
    assert json.loads(out.buffer.getvalue()) == {"title": "Café 🍵"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_output_that_is_full_ends_a_command_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback, and nothing fails again when the process ends."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stdout", full)
        with pytest.raises(SystemExit) as ended, safe_output():
            print("a line")  # noqa: T201 - as a command does
        full.flush()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "cloudsched: The output cannot be written: No space left on device.\n"


def test_another_error_of_the_system_is_no_error_of_the_output() -> None:
    """It is raised."""
    with pytest.raises(FileNotFoundError), safe_output():
        Path("/none/at/all").read_text("utf-8")
