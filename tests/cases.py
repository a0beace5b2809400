"""Tables of small cases that one test tries, one after the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from functools import wraps
from typing import Any

import pytest

CASE_LENGTH, ERROR_LENGTH = 300, 1_000
"""How much of a case and of its error a failure shows, in characters; the first error is shown whole as well."""


def try_each(
    names: str, cases: Iterable[Any], **fresh: Callable[[], AbstractContextManager[Any]]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test for each case, and name all cases that fail at once.

    `names` are those of the test's arguments, with commas between them, as `pytest.mark.parametrize` takes them. Use it
    where a case costs less than a test of its own and tells nothing alone. The cases share the test's fixtures, so
    none may leave anything behind in them. Arguments that are named in `fresh` are opened anew for each case.
    """
    arguments = names.replace(" ", "").split(",")
    table = [case if len(arguments) > 1 else (case,) for case in cases]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def test_all(**fixtures: object) -> None:
            assert table, f"{test.__name__} has no cases"
            failures: list[tuple[str, BaseException]] = []
            for case in table:
                try:
                    with ExitStack() as stack:
                        own = {name: stack.enter_context(make()) for name, make in fresh.items()}
                        test(**dict(zip(arguments, case, strict=True)), **own, **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - each is reported
                    failures.append((", ".join(map(_show, case))[:CASE_LENGTH], error))
            if failures:
                said = [f"{case}\n    {type(error).__name__}: {error}"[:ERROR_LENGTH] for case, error in failures]
                heading = f"{len(failures)} of {len(table)} cases fail:"
                raise AssertionError("\n\n".join([heading, *said])) from failures[0][1]

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in {*arguments, *fresh}]
        test_all.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return test_all

    return decorate


def _show(value: object) -> str:
    return str(getattr(value, "name", value))
