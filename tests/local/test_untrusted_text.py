"""Text from users is shown on a terminal without what could control the terminal."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from cloudsched.local.untrusted_text import to_json_line, to_printable

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
