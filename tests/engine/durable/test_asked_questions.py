"""An answer counts for what was asked: its words, whom, and in which order, whatever is deployed meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.engine.harness import DAY, MINUTE

from cloudsched import App, Context, EventSender, Execution, Schedule
from cloudsched.domain.documents.authority import SenderRole
from cloudsched.testing import Simulation

POSTCARD = ("approved", {"by": ("user:eve", "owner"), "question": "Send a postcard?"})
PAY = ("approved", {"by": ("user:eve", "owner"), "question": "Pay 9000 EUR to Eve?"})
LONG = "x" * 300


@dataclass
class Code:
    """What the deployed handler asks, one after the other, and what it has done."""

    asks: list[tuple[str, dict[str, Any]]]
    done: list[str] = field(default_factory=list)

    def run(self, ctx: Context) -> str:
        for name, options in self.asks:
            ctx.wait_for(name, timeout=DAY, **options)
            question = str(options.get("question"))
            ctx.step("act", self.done.append, question)
        return "done"


CHANGES: dict[str, tuple[list[Any], list[Any], tuple[str, str]]] = {
    "words": ([POSTCARD], [PAY], ("Send a postcard?", "Pay 9000 EUR to Eve?")),
    "words at the end": (
        [("approved", {"by": ("owner",), "question": f"{LONG} a postcard?"})],
        [("approved", {"by": ("owner",), "question": f"{LONG} 9000 EUR?"})],
        ("a postcard?", "9000 EUR?"),
    ),
    "no words any more": ([POSTCARD], [("approved", {"by": POSTCARD[1]["by"]})], ("Send a postcard?", "with by=")),
    "order of questions": ([POSTCARD, PAY], [PAY, POSTCARD], ("Send a postcard?", "Pay 9000 EUR to Eve?")),
    "people": ([POSTCARD], [("approved", {**POSTCARD[1], "by": ("user:mallory", "owner")})], ("eve", "mallory")),
    "one more": ([POSTCARD], [("approved", {**POSTCARD[1], "by": ("user:eve", "owner", "admin")})], ("owner", "admin")),
    "order of people": ([POSTCARD], [("approved", {**POSTCARD[1], "by": ("owner", "user:eve")})], ("eve", "owner")),
}


def run(before: list[Any], after: list[Any]) -> tuple[Code, Execution]:
    """Ask, answer, and deploy other code in between; return what that has done."""
    code = Code(before)
    app = App()
    app.handler("ask", retry=False)(code.run)
    with Simulation(app) as sim:
        task = app.create(owner="ada", handler="ask", schedule=Schedule.once(sim.now))
        sim.advance(MINUTE)
        as_owner = EventSender(role=SenderRole.OWNER, subject="user:ada")
        app.send_event(task.id, "approved", {}, sender=as_owner)
        code.asks = after
        sim.advance(MINUTE)
        [record] = sim.executions(task.id)
        return code, record


@pytest.mark.parametrize("change", CHANGES)
def test_an_answer_to_other_words_is_refused_with_both(change: str) -> None:
    """Nothing that follows the new question happens, and the error has what was asked and what is asked now."""
    before, after, told = CHANGES[change]
    code, record = run(before, after)
    assert code.done == []
    assert record.status == "FAILED"
    assert record.error is not None
    assert all(each in record.error.message for each in told)


def test_the_same_question_goes_on() -> None:
    """A deployment that leaves it alone changes nothing, and a set of people has no order to change."""
    by_set = ("approved", {"by": {"user:eve", "owner", "admin"}, "question": "Send it?"})
    by_other_set = ("approved", {"by": {"admin", "owner", "user:eve"}, "question": "Send it?"})
    for before, after in ((POSTCARD, POSTCARD), (by_set, by_other_set)):
        code, record = run([before], [after])
        assert record.status == "SUCCEEDED"
        assert code.done == [str(after[1]["question"])]
