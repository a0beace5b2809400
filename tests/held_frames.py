"""Handlers that end in every way, each with something in its variables, and who tells whether that is freed."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated, Any

from cloudsched import App, AsyncContext, Cancel, Context, Depends, Fail, Retry, Snooze

HOUR = timedelta(hours=1)


class Held:
    """What a handler has in a variable."""

    def keep(self) -> None:
        """Be used once more, so that the variable is not needless."""


_held: list[weakref.ref[Held]] = []


def hold() -> Held:
    """Return what the caller keeps in a variable."""
    held = Held()
    _held.append(weakref.ref(held))
    return held


def count_made() -> int:
    """Return how many of these were made."""
    return len(_held)


def count_held() -> int:
    """Return how many of these are still in memory."""
    return sum(each() is not None for each in _held)


@contextmanager
def watch() -> Iterator[None]:
    """Count only what is held from now on. Nothing searches for garbage meanwhile."""
    _held.clear()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def fail() -> None:
    held = hold()
    raise ValueError(f"no {type(held).__name__}")


def fail_and_note_why() -> None:
    held, noted = hold(), list[Exception]()
    try:
        fail()
    except ValueError as error:
        noted.append(error)
    raise KeyError(str(held)) from noted[0]


def note_and_raise_again() -> None:
    held = hold()
    noted = None
    try:
        fail()
    except ValueError as error:
        noted = error
    held.keep()
    assert noted is not None
    raise noted


def return_failure() -> Fail:
    held = hold()
    return Fail(f"no {held}")


def return_cancel() -> Cancel:
    held = hold()
    return Cancel(f"no {held}")


def return_snooze() -> Snooze:
    held = hold()
    return Snooze(HOUR, f"not yet {held}")


def return_what_cannot_be_stored() -> object:
    held = hold()
    return {"held": held}


def leave() -> None:
    held = hold()
    sys.exit(f"no {held}")


def raise_an_outcome() -> None:
    held = hold()
    raise Retry(f"no {held}")  # type: ignore[misc]


def generate() -> Iterator[object]:
    def count() -> Iterator[object]:
        held = hold()
        yield 1
        raise ValueError(f"no {held}")

    return count()


def open_held() -> Iterator[Held]:
    held = hold()
    yield held


def fail_with_dependency(value: Annotated[Held, Depends(open_held)]) -> None:
    held = hold()
    raise ValueError(f"no {held} {value}")


PLAIN: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        fail,
        fail_and_note_why,
        note_and_raise_again,
        return_failure,
        return_cancel,
        return_snooze,
        return_what_cannot_be_stored,
        leave,
        raise_an_outcome,
        generate,
        fail_with_dependency,
    )
}
"""Those that need no journal, so that a worker which reaches its tasks through the API runs them, too."""


def sleep(ctx: Context) -> None:
    held = hold()
    ctx.sleep(HOUR)
    held.keep()


def wait(ctx: Context) -> None:
    held = hold()
    ctx.wait_for("approved")
    held.keep()


def sleep_and_catch(ctx: Context) -> None:
    held, noted = hold(), list[BaseException]()
    try:
        ctx.sleep(HOUR)
    except BaseException as error:
        noted.append(error)
        raise
    held.keep()


def fail_in_a_step(ctx: Context) -> None:
    held = hold()
    ctx.step("one", fail, retry=False)
    held.keep()


def fail_in_a_step_with_a_timeout(ctx: Context) -> None:
    held = hold()
    ctx.step("one", fail, retry=False, timeout=HOUR)
    held.keep()


def wait_to_try_a_step_again(ctx: Context) -> None:
    held = hold()
    ctx.step("one", fail, retry=3)
    ctx.step("two", fail, retry=3)
    held.keep()


def go_on_after_a_failed_step(ctx: Context) -> str:
    held = hold()
    try:
        ctx.step("one", fail, retry=False)
    except Exception:  # noqa: BLE001 - any
        return f"{held} goes on"
    return ""


def call_what_is_missing(ctx: Context) -> None:
    held = hold()
    ctx.call("missing", {"held": str(held)}).result()


def ask_in_a_step(ctx: Context) -> None:
    held = hold()
    ctx.step("one", lambda: ctx.sleep(HOUR))
    held.keep()


async def fail_async() -> None:
    held = hold()
    await asyncio.sleep(0)
    raise ValueError(f"no {held}")


async def sleep_async(ctx: AsyncContext) -> None:
    held = hold()
    await ctx.sleep(HOUR)
    held.keep()


async def fail_in_a_step_async(ctx: AsyncContext) -> None:
    held = hold()
    await ctx.step("one", fail_async, retry=False)
    held.keep()


async def go_on_after_a_failed_step_async(ctx: AsyncContext) -> str:
    held = hold()
    try:
        await ctx.step("one", fail, retry=False)
    except Exception:  # noqa: BLE001 - any
        return f"{held} goes on"
    return ""


async def sleep_in_a_group(ctx: AsyncContext) -> None:
    held = hold()
    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.sleep(HOUR))
    held.keep()


async def ask_for_two_at_once(ctx: AsyncContext) -> None:
    held = hold()
    await asyncio.gather(ctx.sleep(HOUR), ctx.sleep(HOUR))
    held.keep()


async def forget_to_await(ctx: AsyncContext) -> None:
    held = hold()
    ctx.sleep(HOUR)  # type: ignore[unused-coroutine]
    held.keep()


DURABLE: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        sleep,
        wait,
        sleep_and_catch,
        fail_in_a_step,
        fail_in_a_step_with_a_timeout,
        wait_to_try_a_step_again,
        go_on_after_a_failed_step,
        call_what_is_missing,
        ask_in_a_step,
        fail_async,
        sleep_async,
        fail_in_a_step_async,
        go_on_after_a_failed_step_async,
        sleep_in_a_group,
        ask_for_two_at_once,
        forget_to_await,
    )
}


def register(app: App, handlers: dict[str, Callable[..., Any]]) -> None:
    """Register these with an app: none is tried again."""
    for name, function in handlers.items():
        app.handler(name, retry=False)(function)
