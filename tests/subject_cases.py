"""What a user can and cannot be called, tried at the rule itself, at each door, and in Firestore's rules."""

from __future__ import annotations

REFUSED = (
    *("system", "", "x" * 129, "a/b", "/", ".", "..", "__", "___", "____", "__x__", "__system__"),
    *("a\x00", "\n", "ada\n", "\x1fada", "a\x7fb", "a\x80", "a\x9f", "\r\nX-Owner: system"),
)
ACCEPTED = (
    *("ada", "x" * 128, "System", "system2", "system ", " system", "_", "__x", "x__", "_x_", "...", "a.b", "a b"),
    *("ada@example.com", "auth0|5f7c", "日本", "é" * 128, "%73ystem", "\N{NO-BREAK SPACE}"),
)
