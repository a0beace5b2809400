"""Prepare a process for its first page, which else would take three times as long as the next one."""

from __future__ import annotations

import gc
import os
import threading
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.app import App


MAX_WAIT: Final = 10.0
"""The longest that a fork waits for it, in seconds."""


def warm_up(app: App | None = None) -> None:
    """Import the page, compile its templates, build the models whose build waits for their first use, and draw Home.

    Home is drawn for nobody, from an app in this process: that opens the parts of the app that answer the page.
    """
    from werkzeug.test import EnvironBuilder  # noqa: PLC0415 - by a process that serves already
    from werkzeug.wrappers import Request  # noqa: PLC0415 - likewise

    from cloudsched.client.local_client import LocalApi  # noqa: PLC0415 - likewise
    from cloudsched.dashboard.application import Dashboard  # noqa: PLC0415 - likewise
    from cloudsched.dashboard.rendering import TEMPLATES  # noqa: PLC0415 - likewise
    from cloudsched.local import embedded_page  # noqa: F401, PLC0415 - likewise
    from cloudsched.web.own_api import find_sender  # noqa: PLC0415 - likewise

    for name in TEMPLATES.list_templates(extensions=["html"]):
        TEMPLATES.get_template(name)
    for kind in _list_models(BaseModel):
        if kind.__module__.startswith("cloudsched."):
            kind.model_rebuild(raise_errors=False)
    if app is not None:
        Dashboard(LocalApi(find_sender(app)), place="").respond(Request(EnvironBuilder().get_environ()))
    gc.collect()
    gc.freeze()  # all of it stays, so no later collection has to look at it


def warm_up_soon(app: App | None = None) -> None:
    """Warm up in a thread of its own, while the first requests are already served.

    A fork waits for that, `MAX_WAIT` at most: what this thread imports at that moment no child could ever import.
    """
    thread = threading.Thread(target=warm_up, args=[app], name="cloudsched-warm-up", daemon=True)
    thread.start()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=partial(thread.join, MAX_WAIT))


def _list_models(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in kind.__subclasses__():
        yield each
        yield from _list_models(each)
