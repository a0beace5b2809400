"""What Hypothesis tries: the same examples in every run, on every machine, whatever ran before in the same process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.internal import constants_ast
from hypothesis.internal.conjecture import providers

import cloudsched.domain

_SOURCE = Path(cloudsched.domain.__file__).parent


def fix_examples() -> None:
    """Choose the examples of each test by its code alone: not by chance, by what failed last time or by a clock.

    Hypothesis also tries constants that it finds in the code of the modules that happen to be imported. With several
    processes, a part of the tests or another order, these are others. Here they are always those of the domain.
    """
    settings.register_profile(
        "fixed", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("fixed")
    if hasattr(providers, "_get_local_constants"):  # not before 6.131; test_fixed_examples.py says if it is replaced
        providers._get_local_constants = _read_constants  # noqa: SLF001 - there is no setting for it


@cache
def _read_constants() -> constants_ast.Constants:
    found = constants_ast.Constants()
    for path in sorted(_SOURCE.rglob("*.py")):
        found |= constants_ast._constants_from_source(path.read_bytes(), limit=True)  # noqa: SLF001 - likewise
    return found
