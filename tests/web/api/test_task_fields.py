"""Fields of tasks over HTTP: where a task comes from, and the labels that find it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.conftest import Call, create, fetch

SAID = [{"role": "user", "content": "Greet me each day"}, {"role": "assistant", "content": "With pleasure."}]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"messages": [{"role": "boss", "content": "x"}]}, "source.messages.0.role"),
        ({"messages": [SAID[0]] * 102}, "source.messages"),
        ({"messages": [{"role": "user", "content": "x" * 9_999}] * 7}, "source"),
        ({"messages": [SAID[0]], "context": {"x": "y" * 65_480}}, "source"),
        ({"model": {"maxTurns": 0}}, "source.model.maxTurns"),
    ],
)
def test_a_source_has_bounds(call: Call, wrong: dict[str, Any], field: str) -> None:
    """64 KiB together, at most 101 messages, known roles and settings alone: the answer names what is wrong."""
    refused = create(call, source=wrong)
    assert (refused.status_code, refused.json["field"]) == (400, field)


def test_a_label_finds_its_tasks(call: Call) -> None:
    """After an edit by what the task has then; they are sorted by key."""
    made = create(call, id="a", labels=["team=payments", "env=prod"])
    assert made.json["labels"] == ["env=prod", "team=payments"]
    create(call, id="b", labels=["team=payroll"])

    def find(label: str) -> list[str]:
        return sorted(task["id"] for task in fetch(call, f"/v1/tasks?label={label}")["tasks"])

    assert (find("team=payments"), find("team=pay")) == (["a"], [])
    call("PATCH", "/v1/tasks/a", {"labels": ["team=payroll"]})
    assert (find("team=payments"), find("team=payroll")) == ([], ["a", "b"])


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (["payments"], "labels.0"),
        (["Team=payments"], "labels.0"),
        ([f"team={'x' * 64}"], "labels.0"),
        (["team=a", "team=b"], "'team' twice"),
        ([f"key{number}=x" for number in range(17)], "labels"),
    ],
    ids=str,
)
def test_a_label_that_nobody_could_list_by_is_refused(call: Call, labels: object, says: str) -> None:
    """The answer names the label."""
    answer = create(call, labels=labels)
    assert answer.status_code == 400
    assert says in answer.text


@pytest.mark.parametrize("other", ["handler=greet", "dueFrom=2027-01-01T00:00:00Z", "orderBy=nextExecutionTime"])
def test_a_label_goes_with_other_filters(call: Call, other: str) -> None:
    """A task has both, in whatever order they are listed."""
    for number, labels in enumerate((["team=payments"], ["team=sales"])):
        assert create(call, id=f"t{number}", labels=labels).status_code == 201
    answer = call("GET", f"/v1/tasks?label=team=payments&{other}")
    assert [each["id"] for each in answer.json["tasks"]] == ["t0"]
