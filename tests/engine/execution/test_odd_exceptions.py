"""Whatever a handler raises, its attempt has failed with the name of its class, and what can be read of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest

from cloudsched import App, AsyncContext, Context, Schedule
from cloudsched.domain.documents.execution import Execution
from cloudsched.testing import Simulation


def _fail(*_: object) -> Any:  # noqa: ANN401 - whatever it is read as
    raise RuntimeError("not to be read")


def _leave(*_: object) -> Any:  # noqa: ANN401 - the same
    raise SystemExit("not to be read")


class _Endless(list[str]):
    def __iter__(self) -> Iterator[str]:
        return (str(number) for number in count())


class _Hidden(type):
    def __getattribute__(cls, name: str) -> Any:  # noqa: ANN401 - the same
        return _fail() if name in {"__qualname__", "__name__"} else super().__getattribute__(name)


READ = ("__cause__", "__context__", "__traceback__", "__suppress_context__", "__notes__", "__class__", "exceptions")
READ_MORE = ("args", "code", "name", "obj", "errno", "value", "message", "__dict__")
VALUES: dict[str, object] = {
    "raises": property(_fail),
    "leaves": property(_leave),
    "a text": "a text",
    "endless": property(lambda _: _Endless()),
    "a new one": property(lambda error: type(error)("again")),
}
BASES = (ValueError, TypeError, KeyError, SystemExit, KeyboardInterrupt, TimeoutError, AttributeError, ImportError)


def _make_odd() -> dict[str, Callable[[], BaseException]]:
    found: dict[str, Callable[[], BaseException]] = {}

    def add(name: str, kind: type[BaseException], body: dict[str, Any], *args: object) -> None:
        meta: Any = type(kind)
        odd = meta("Odd", (kind,), body)
        found[name] = lambda: odd(*args)

    for attribute in (*READ, *READ_MORE):
        for name, value in VALUES.items():
            add(f"{attribute} {name}", ValueError, {attribute: value}, "text")
    for base in BASES:
        for attribute in ("__class__", "__cause__", "__traceback__"):
            add(f"{attribute} of {base.__name__} raises", base, {attribute: property(_fail)}, "text")
        for method in ("__str__", "__repr__", "__bool__", "__eq__", "__hash__", "__getattribute__", "with_traceback"):
            add(f"{method} of {base.__name__} raises", base, {method: _fail}, "text")
            add(f"{method} of {base.__name__} leaves", base, {method: _leave}, "text")
    for kind in (ExceptionGroup, BaseExceptionGroup):
        for attribute in ("exceptions", "__cause__", "__notes__", "message"):
            for name, value in VALUES.items():
                body = {attribute: value}
                add(f"{attribute} of a {kind.__name__} {name}", kind, body, "text", [ValueError("one")])
    add("an enormous text", ValueError, {}, "text" * 10_000_000)
    add("half a character", ValueError, {}, "\ud800")
    add("a cause of its own", ValueError, {"__cause__": property(lambda error: error)})
    hidden: Any = _Hidden("Odd", (ValueError,), {})
    found["its class hides its name"] = partial(hidden, "text")
    return found


def _link(length: int, link: Callable[[BaseException, BaseException], object]) -> BaseException:
    first = error = ValueError("first")
    for _ in range(length):
        following = ValueError("one more")
        link(error, following)
        error = following
    link(error, first)
    return first


def _nest(kind: type[BaseExceptionGroup[Any]], depth: int) -> BaseException:
    error: BaseException = ValueError("innermost")
    for _ in range(depth):
        error = kind("group", [error])
    return error


def _note(notes: object) -> BaseException:
    error = ValueError("text")
    vars(error)["__notes__"] = notes
    return error


ODD = {
    **_make_odd(),
    "a cycle of causes": lambda: _link(3, lambda one, two: setattr(one, "__cause__", two)),
    "a cycle of contexts": lambda: _link(3, lambda one, two: setattr(one, "__context__", two)),
    "a thousand causes": lambda: _link(1000, lambda one, two: setattr(one, "__cause__", two)),
    "deep groups": lambda: _nest(ExceptionGroup, 5000),
    "deep groups of any": lambda: _nest(BaseExceptionGroup, 5000),
    "wide groups": lambda: ExceptionGroup("group", [ValueError("one")] * 10_000),
    "endless notes": lambda: _note(_Endless()),
    "notes without a text": lambda: _note([type("Odd", (), {"__str__": _fail, "__repr__": _fail})()]),
    "notes that are a text": lambda: _note("text"),
    "notes that are a number": lambda: _note(3),
    "many notes": lambda: _note(["text"] * 100_000),
}
NAMES = {"Odd", "ValueError", "ExceptionGroup"}


def _in_plain(app: App, make: Callable[[], BaseException]) -> None:
    @app.handler("work")
    def work() -> None:
        raise make()


def _in_durable(app: App, make: Callable[[], BaseException]) -> None:
    @app.handler("work")
    def work(ctx: Context) -> None:
        ctx.step("one", lambda: 1)
        raise make()


def _in_async(app: App, make: Callable[[], BaseException]) -> None:
    @app.handler("work")
    async def work(ctx: AsyncContext) -> None:
        await ctx.step("one", lambda: 1)
        raise make()


def _as_cause(app: App, make: Callable[[], BaseException]) -> None:
    @app.handler("work")
    def work() -> None:
        raise ValueError("text") from make()


def _logged(app: App, make: Callable[[], BaseException]) -> None:
    @app.handler("work")
    def work() -> None:
        error = make()
        logging.getLogger("work").info("odd", exc_info=(type(error), error, None))
        raise error


def _in_step(app: App, make: Callable[[], BaseException]) -> None:
    def leave() -> None:
        raise make()

    @app.handler("work")
    def work(ctx: Context) -> None:
        ctx.step("one", leave, retry=False)


PLACES = {each.__name__: each for each in (_in_plain, _in_durable, _in_async, _as_cause, _logged, _in_step)}


def run(register: Callable[[App, Callable[[], BaseException]], None], make: Callable[[], BaseException]) -> Execution:
    app = App()
    calls = list[None]()

    def make_and_count() -> BaseException:
        calls.append(None)
        return make()

    register(app, make_and_count)
    with Simulation(app) as sim:
        app.create(id="t", handler="work", schedule=Schedule.once(sim.now), retry=0)
        sim.run_until_idle()
        assert len(calls) == 1
        (execution,) = app.executions("t").items
        return execution


@pytest.mark.parametrize("place", PLACES)
def test_whatever_is_raised_ends_the_only_attempt_as_failed(place: str) -> None:
    """With the name of its class; what cannot be read of it costs only its text."""
    wrong = {}
    for name, make in ODD.items():
        execution = run(PLACES[place], make)
        error = execution.error
        if (
            execution.status != "FAILED"
            or error is None
            or error.type not in {*NAMES, "StepFailed", "BaseExceptionGroup"}
        ):
            wrong[name] = (execution.status, error and (error.type, error.message[:200]))
    assert not wrong


def test_what_is_plain_is_shown_with_its_causes_its_groups_and_its_notes() -> None:
    error = ValueError("outer")
    error.__cause__ = ExceptionGroup("group", [KeyError("inner")])
    error.add_note("a note")
    found = run(_in_plain, lambda: error).error
    assert found is not None
    assert found.message == "outer"
    for text in ("KeyError: 'inner'", "group", "a note", "direct cause"):
        assert text in (found.traceback or "")


def test_the_variables_of_others_stay() -> None:
    """A test that has kept an error by `pytest.raises` reads the variables of the functions it went through."""

    def compare() -> None:
        numbers = [1, 2]
        raise ValueError(str(numbers))

    with pytest.raises(ValueError, match="1, 2") as kept:
        compare()

    def fail() -> BaseException:
        error = KeyError("of a handler")
        error.__cause__ = kept.value
        return error

    assert run(_in_plain, fail).status == "FAILED"
    assert kept.tb.tb_next is not None
    assert kept.tb.tb_next.tb_frame.f_locals == {"numbers": [1, 2]}
