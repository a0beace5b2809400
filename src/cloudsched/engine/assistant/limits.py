"""How much one execution of the assistant may use, and an estimate of what it will."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cloudsched.engine.assistant.brief import INSTRUCTIONS, write_brief

if TYPE_CHECKING:
    from cloudsched.domain.documents.source import Source
    from cloudsched.domain.documents.task import TaskSpec

_BYTES_A_TOKEN: Final = 4
"""Four characters of English are a token, as providers say."""
_ANSWER_TOKENS: Final = 400
"""A call of a tool, or a result of some paragraphs."""
_RESULT_TOKENS: Final = 500
"""What a tool answers."""


@dataclass(frozen=True, slots=True)
class AssistantLimits:
    """How often one execution may ask the model, and how many tokens it may use before it asks once more."""

    turns: int = 10
    tokens: int = 100_000

    def narrow(self, source: Source | None) -> AssistantLimits:
        """Return the limits with those that a task sets itself, where they are lower."""
        own = None if source is None else source.model
        if own is None:
            return self
        return AssistantLimits(
            min(self.turns, own.max_turns or self.turns), min(self.tokens, own.max_tokens or self.tokens)
        )


def estimate_cost(spec: TaskSpec, limits: AssistantLimits) -> dict[str, Any]:
    """Return the fields of a task that say what one execution will cost.

    That is one turn for each tool, and one for the result. Each turn reads all that was said and done before it.
    """
    own = limits.narrow(spec.source)
    tools = spec.payload.get("tools", ())
    turns = min(own.turns, 1 + (len(tools) if isinstance(tools, list | tuple) else 1))
    written = len(json.dumps(write_brief(spec, ""), ensure_ascii=False).encode("utf-8", "replace")) + len(INSTRUCTIONS)
    read = turns * written // _BYTES_A_TOKEN + _RESULT_TOKENS * turns * (turns - 1) // 2
    tokens = min(own.tokens, read + turns * _ANSWER_TOKENS)
    return {"query_per_execution": float(turns), "tokens_per_execution": float(tokens)}
