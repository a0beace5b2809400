"""A request for each verb of the table, so that a new one is tried wherever verbs are."""

from __future__ import annotations

from typing import Any, Final

from cloudsched.domain.documents.verbs import Verb


def _choose_body(verb: Verb) -> dict[str, Any] | None:
    """Return what its button sends, or the example if there has to be a body."""
    button, example = verb.traits.button, verb.traits.example
    sent = {} if button is None else button.body
    return sent or (example["value"] if example is not None and verb.traits.needs_body else None)


REQUESTS: Final = {verb: (verb.path.format(event="approved"), _choose_body(verb)) for verb in Verb if verb.path}
"""The end of the path, and the body. Editing and deleting are no requests below a task's path."""
