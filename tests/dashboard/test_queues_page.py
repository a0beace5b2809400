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


@pytest.mark.parametrize("queue", ["cloudsched", "cloudsched-hops"])
def test_a_paused_queue_stands_first(stack: Stack, ui: str, queue: str) -> None:
    """With who paused it and when; the words are gone once it is resumed. Each queue says whose tasks it carries."""
    address = f"{stack.url}/v1/dispatch-queues/{queue}"
    text = read(ui, "/queues")
    assert "is paused" not in text
    for priority in ("critical", "high", "low"):
        assert f"cloudsched-{priority} of Cloud Tasks, priority {priority} Running" in text
    try:
        assert requests.patch(address, json={"state": "PAUSED"}, timeout=30).status_code == 200
        text = read(ui, "/queues")
        assert "For workers 0 runs wait." in text
        first = text[text.index("Since") :].partition("Running")[0]
        assert f" {queue} of Cloud Tasks" in first
        assert re.search("Paused by somebody without sign-in Resume .* now ", first)
    finally:
        assert requests.patch(address, json={"state": "RUNNING"}, timeout=30).status_code == 200
    text = read(ui, "/queues")
    assert "is paused" not in text
    assert "Paused by" not in text
