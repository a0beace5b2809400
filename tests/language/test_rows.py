"""Rows: none names a class or a rule that does not exist."""

from __future__ import annotations

import re

from cloudsched.language.languages import LANGUAGES
from cloudsched.language.rows import RULES, Rule

_MARKS = {"comma", "dash", "slash", "open", "close", "clock", "date", "pair", "quote", "path"}
_KNOWN = _MARKS | {kind for language in LANGUAGES.values() for kind in {**language.words, **language.requests}}


def test_every_class_and_rule_of_a_row_exists() -> None:
    for rule in list(RULES.values()):
        if isinstance(rule, Rule):
            assert rule.first  # which compiles its rows
            for pattern, _ in rule.patterns:
                names = re.sub(r"\S*/\S+/|\w+\+?=|@\w+|:[-.\d]+|[&!<\[\]{}|]", " ", pattern).split()
                assert _KNOWN.issuperset(names), pattern
