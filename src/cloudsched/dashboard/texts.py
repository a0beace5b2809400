"""Texts that are too long to be shown whole."""

from __future__ import annotations


def shorten(text: str, limit: int = 160) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
