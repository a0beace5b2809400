"""The page of queues: what is paused stands first, with who and since when, and only then what waits for workers."""

from __future__ import annotations

import html
import re

import pytest
import requests
from tests.dashboard.conftest import get

from cloudsched.local.stack import Stack


def read(ui: str, path: str) -> str:
    text = get(f"{ui}{path}").text
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


NAMED = "by somebody without sign-in on Sat 27 Mar 2027"


@pytest.mark.parametrize(("queue", "who"), [("cloudsched", NAMED), ("hops", "")])
def test_a_paused_queue_stands_first(stack: Stack, ui: str, queue: str, who: str) -> None:
    """Its state is a word with a mark. Nothing is said to be served, and the line is gone once it is resumed.

    Each says what it carries, by the priorities by which Home names it, and how fast; the queue of hops has none.
    """
    name = "cloudsched" if queue == "cloudsched" else f"cloudsched-{queue}"
    address = f"{stack.url}/v1/dispatch-queues/{name}"
    text = read(ui, "/queues")
    assert "is paused" not in text
    assert "Per second At the same time Waiting" in text
    for priority in ("critical", "high", "low"):
        assert f"cloudsched-{priority} priority {priority} Running" in text
    assert "cloudsched priority normal Running" in text
    assert "cloudsched-hops Running" in text
    try:
        assert requests.patch(address, json={"state": "PAUSED"}, timeout=30).status_code == 200
        text = read(ui, "/queues")
        assert "1 queue is paused. Nothing waits for workers." in text
        assert f"The queue {name} is paused" in text
        assert who in text
        assert text.index("is paused") < text.index("Worker queues")
        assert re.search(rf" {name} (priority normal )?Paused ", text)
        assert "in which something waits" not in text
    finally:
        assert requests.patch(address, json={"state": "RUNNING"}, timeout=30).status_code == 200
    assert "is paused" not in read(ui, "/queues")
