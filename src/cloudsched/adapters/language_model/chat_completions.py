"""Models behind the chat completions API of OpenAI, which other providers and servers on one's own machine speak, too.

Source: platform.openai.com/docs/api-reference/chat. ``response_format`` asks for JSON that fits a schema; servers that
do not know it ignore it, so that the schema stands in the instructions as well. ``refusal`` is set in place of the
content, and ``finish_reason`` is ``stop`` for a whole answer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from cloudsched.adapters.language_model.transport import Prices, parse_answer
from cloudsched.engine.ports.model import record_usage
from cloudsched.errors import UnusableAnswer

if TYPE_CHECKING:
    from cloudsched.adapters.language_model.transport import JsonTransport

API_URL: Final = "https://api.openai.com/v1"
MAX_OUTPUT_TOKENS: Final = 8_192


class ChatCompletionsModel:
    """A `Model` of any such server.

    Args:
        transport: Posts the requests.
        url: The API, up to ``/chat/completions``.
        name: The model's name.
        key: The API key, if the server wants one.
        prices: What its tokens cost.
    """

    def __init__(
        self, transport: JsonTransport, url: str, name: str, key: str | None = None, prices: Prices | None = None
    ) -> None:
        self._transport = transport
        self._url = f"{url}/chat/completions"
        self._name = name
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._prices = prices or Prices()

    def complete(self, instructions: str, data: Any, schema: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the model's answer; see `Model`."""
        told = f"{instructions}\n\nAnswer with one JSON object that fits this schema:\n{json.dumps(schema)}"
        answer = self._transport.post(
            self._url,
            {
                "model": self._name,
                "messages": [
                    {"role": "system", "content": told},
                    {"role": "user", "content": json.dumps(data, ensure_ascii=False)},
                ],
                "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
                "max_completion_tokens": MAX_OUTPUT_TOKENS,
            },
            self._headers,
        )
        usage = answer.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        record_usage(self._prices.count(counts.get("prompt_tokens"), counts.get("completion_tokens")))
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        found = choice.get("message")
        message: dict[str, Any] = found if isinstance(found, dict) else {}
        if message.get("refusal") or choice.get("finish_reason") == "content_filter":
            raise UnusableAnswer("refused", "the model refuses")
        if choice.get("finish_reason") == "length":
            raise UnusableAnswer("truncated", "it was cut off")
        return parse_answer(message.get("content"))
