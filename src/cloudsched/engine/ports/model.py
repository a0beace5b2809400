"""The port for language models: one method. The cost of answers is counted beside it."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


class Model(Protocol):
    """A language model.

    * It is stateless: each call says all that it has to know.
    * `instructions` are the program's own. `data` comes from people, and is handed over as data.
    * The caller checks the answer: an adapter promises JSON, not that it fits the schema.
    * A call ends within the adapter's timeout, twice that if it was repeated.
    """

    def complete(self, instructions: str, data: Any, schema: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the model's answer as JSON.

        Args:
            instructions: The task, in words.
            data: The JSON to work on.
            schema: The JSON schema that the answer should fit.

        Raises:
            ModelUnavailable: It did not answer, or not in time.
            UnusableAnswer: It refused, was cut off, or answered what is not JSON.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """The usage of a model by some calls. `cost` is in dollars, 0 if no prices are set."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: ModelUsage) -> ModelUsage:
        return ModelUsage(
            self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens, self.cost + other.cost
        )


@dataclass(slots=True)
class Meter:
    """Counts what the calls within a block have used."""

    total: ModelUsage = ModelUsage()
    calls: int = 0


_METER: ContextVar[Meter | None] = ContextVar("cloudsched_model_meter", default=None)


@contextmanager
def meter_models() -> Iterator[Meter]:
    """Count what the calls of models within the block use, on this thread."""
    meter = Meter()
    token = _METER.set(meter)
    try:
        yield meter
    finally:
        _METER.reset(token)


def record_usage(usage: ModelUsage) -> None:
    """Add the usage of a call. Adapters also call it for answers that are of no use."""
    meter = _METER.get()
    if meter is not None:
        meter.total = meter.total + usage
        meter.calls += 1
