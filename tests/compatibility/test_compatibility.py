"""Programs that were written for the last release work with this code: docs/reference/compatibility.md says how far."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.compatibility.rules import find_breaks
from tests.compatibility.surface import RELEASED, describe

Surface = dict[str, Any]
KEYWORD = "KEYWORD_ONLY"


@pytest.fixture(scope="module")
def released() -> Surface:
    surface: Surface = json.loads(RELEASED.read_text("utf-8"))
    return surface


def test_nothing_is_missed_by_users_of_the_last_release(released: Surface) -> None:
    breaks = find_breaks(released, describe())
    assert not breaks, "\n".join(
        [
            *breaks,
            "Keep the old beside the new, as docs/reference/compatibility.md promises. If this is a release that may",
            "break it, say so in CHANGELOG.md, and run `python -m tests.compatibility.surface`.",
        ]
    )


def _operation(surface: Surface, name: str = "POST /v1/tasks") -> Any:  # noqa: ANN401 - JSON
    return surface["operations"][name]


def _field(surface: Surface, schema: str, name: str) -> Any:  # noqa: ANN401 - JSON
    return surface["schemas"][schema]["properties"][name]


def _call(surface: Surface, name: str, method: str) -> list[list[Any]]:
    calls: list[list[Any]] = surface["python"][name]["members"][method]
    return calls


def _option(surface: Surface, name: str = "--owner") -> Any:  # noqa: ANN401 - JSON
    return surface["commands"]["tasks create"]["options"][name]


def _rename(calls: list[list[Any]], old: str, new: str) -> None:
    next(each for each in calls if each[0] == old)[0] = new


BREAKS: dict[str, Callable[[Surface], object]] = {
    # requests
    "a path is gone": lambda it: it["operations"].pop("POST /v1/tasks"),
    "a path is another one": lambda it: it["operations"].update(
        {"POST /v1/jobs": it["operations"].pop("POST /v1/tasks")}
    ),
    "an operation's id is another one": lambda it: _operation(it).update(operationId="make_task"),
    "a parameter is gone": lambda it: _operation(it)["parameters"].pop(),
    "a parameter is required": lambda it: _operation(it)["parameters"][0].update(required=True),
    "a new parameter is required": lambda it: _operation(it)["parameters"].append(
        {"in": "query", "name": "x", "required": True, "schema": {"type": "string"}}
    ),
    "a parameter has another default": lambda it: _operation(it)["parameters"][0]["schema"].update(default="true"),
    "a key has another form": lambda it: _operation(it)["parameters"][1]["schema"].update(pattern="^[a-z]$"),
    "a body is required": lambda it: _operation(it, "POST /v1/tasks/{taskId}/trigger")["requestBody"].update(
        required=True
    ),
    "a body is of another type": lambda it: _operation(it)["requestBody"].update(content={"text/plain": {}}),
    "a field of a request is gone": lambda it: it["schemas"]["NewTask"]["properties"].pop("purpose"),
    "a field of a request is required": lambda it: it["schemas"]["NewTask"].update(required=["owner"]),
    "a new field of a request is required": lambda it: (
        it["schemas"]["NewTask"]["properties"].update(x={"type": "string"}),
        it["schemas"]["NewTask"].update(required=["x"]),
    ),
    "a field of a request is another type": lambda it: _field(it, "NewTask", "title").update(type="integer"),
    "a text may be less long": lambda it: _field(it, "NewTask", "title").update(maxLength=100),
    "a text may be less short": lambda it: _field(it, "NewTask", "title").update(minLength=2),
    "a member of a request's set is gone": lambda it: it["schemas"]["Overlap"]["enum"].pop(),
    "one of several forms is gone": lambda it: (
        _field(it, "NewTask", "schedule").update({"type": "string"})
        or [_field(it, "NewTask", "schedule").pop(key, None) for key in ("anyOf", "$ref")]
    ),
    # answers
    "an answer is gone": lambda it: _operation(it)["responses"].pop("201"),
    "an answer is of another type": lambda it: _operation(it)["responses"]["201"].update(content={"text/html": {}}),
    "a header is gone": lambda it: _operation(it)["responses"]["201"]["headers"].pop("ETag"),
    "a field of an answer is gone": lambda it: it["schemas"]["Task"]["properties"].pop("runCount"),
    "a field of an answer is another type": lambda it: _field(it, "Task", "runCount").update(type="string"),
    "a field of an answer may be null": lambda it: _field(it, "Task", "title").update(type=["string", "null"]),
    "a field of an answer has another format": lambda it: _field(it, "Task", "createdAt").update(format="date"),
    "a field of an answer may be missing": lambda it: it["schemas"]["Task"]["required"].remove("id"),
    "a field within a list is gone": lambda it: it["schemas"]["Execution"]["properties"].pop("attempts"),
    # Python
    "a name is gone": lambda it: it["python"].pop("cloudsched.Schedule"),
    "a class is a function": lambda it: it["python"].update({"cloudsched.Schedule": {"is": "function", "takes": []}}),
    "a method is gone": lambda it: it["python"]["cloudsched.client.Client"]["members"].pop("pause"),
    "a method of the other colour is gone": lambda it: it["python"]["cloudsched.client.AsyncClient"]["members"].pop(
        "pause"
    ),
    "an attribute is gone": lambda it: it["python"]["cloudsched.Task"]["members"].pop("title"),
    "a parameter of a method is gone": lambda it: _call(it, "cloudsched.client.Client", "pause").pop(),
    "a parameter has another name": lambda it: _rename(
        _call(it, "cloudsched.client.Client", "pause"), "etag", "version"
    ),
    "a positional parameter has another name": lambda it: _rename(
        _call(it, "cloudsched.client.Client", "pause"), "task_id", "task"
    ),
    "a new parameter of a method is required": lambda it: _call(it, "cloudsched.client.Client", "pause").append(
        ["x", KEYWORD, None]
    ),
    "a parameter comes in between": lambda it: _call(it, "cloudsched.client.Client", "snooze").insert(
        1, ["x", "POSITIONAL_OR_KEYWORD", "None"]
    ),
    "a parameter must be named": lambda it: _call(it, "cloudsched.client.Client", "pause")[0].__setitem__(1, KEYWORD),
    "a parameter cannot be named": lambda it: _call(it, "cloudsched.client.Client", "pause")[0].__setitem__(
        1, "POSITIONAL_ONLY"
    ),
    "a parameter has no default": lambda it: _call(it, "cloudsched.client.Client", "pause")[-1].__setitem__(2, None),
    "a parameter of a method has another default": lambda it: _call(it, "cloudsched.client.Client", "pause")[
        -1
    ].__setitem__(2, "''"),
    "a field of create is gone": lambda it: _call(it, "cloudsched.client.Client", "create").remove(
        ["owner", KEYWORD, "…"]
    ),
    "a class takes less": lambda it: it["python"]["cloudsched.client.Client"]["takes"].pop(),
    "an error is no longer of its kind": lambda it: it["python"]["cloudsched.errors.StoreUnavailable"]["bases"].remove(
        "Unavailable"
    ),
    "an error has lost an attribute": lambda it: it["python"]["cloudsched.errors.Unavailable"]["members"].pop(
        "retry_after"
    ),
    "a member of an enum is gone": lambda it: it["python"]["cloudsched.TaskStatus"]["members"].pop("PAUSED"),
    "a member of an enum has another value": lambda it: it["python"]["cloudsched.TaskStatus"]["members"].update(
        PAUSED="paused"
    ),
    # commands, settings, packages
    "a command is gone": lambda it: it["commands"].pop("tasks pause"),
    "an option is gone": lambda it: it["commands"]["tasks create"]["options"].pop("--owner"),
    "an option is required": lambda it: _option(it).update(required=True),
    "an option is a flag": lambda it: _option(it).update(is_flag=True),
    "an option may be given once": lambda it: _option(it, "--label").update(multiple=False),
    "a new option is required": lambda it: it["commands"]["tasks create"]["options"].update(
        {"--x": {**_option(it), "required": True}}
    ),
    "an argument is required": lambda it: it["commands"]["tasks create"]["arguments"][0].update(required=True),
    "an argument is gone": lambda it: it["commands"]["tasks create"]["arguments"].clear(),
    "an exit code is another one": lambda it: it["exit codes"].update(NOT_FOUND=9),
    "a setting is gone": lambda it: it["settings"].remove("CLOUDSCHED_STORE"),
    "a setting of a deployment is gone": lambda it: it["settings"].remove("CORS_ORIGINS"),
    "an extra is gone": lambda it: it["extras"].remove("worker"),
    "a Python is gone": lambda it: it["pythons"].remove("3.12"),
    "the command has another name": lambda it: it.update(scripts=["sched"]),
}
ALLOWED: dict[str, Callable[[Surface], object]] = {
    "nothing": lambda _: None,
    "a new path": lambda it: it["operations"].update({"POST /v1/jobs": _operation(it)}),
    "a new parameter": lambda it: _operation(it)["parameters"].append(
        {"in": "query", "name": "x", "schema": {"type": "string"}}
    ),
    "a new field of requests": lambda it: it["schemas"]["NewTask"]["properties"].update(x={"type": "string"}),
    "wider limits": lambda it: _field(it, "NewTask", "title").update(maxLength=1000, minLength=0),
    "a new member of a set": lambda it: it["schemas"]["Overlap"]["enum"].append("merge"),
    "a new field of answers": lambda it: it["schemas"]["Task"]["properties"].update(x={"type": "string"}),
    "a field that is always there": lambda it: it["schemas"]["Task"]["required"].append("nextExecutionTime"),
    "a new answer": lambda it: _operation(it)["responses"].update({"202": {}}),
    "a new name": lambda it: it["python"].update({"cloudsched.x": {"is": "value"}}),
    "a new method": lambda it: it["python"]["cloudsched.client.Client"]["members"].update(x=[]),
    "a new parameter of a method": lambda it: _call(it, "cloudsched.client.Client", "pause").append(
        ["x", KEYWORD, "None"]
    ),
    "a parameter that may be left out": lambda it: _call(it, "cloudsched.client.Client", "pause")[0].__setitem__(
        2, "None"
    ),
    "an error of a narrower kind": lambda it: it["python"]["cloudsched.errors.NotFound"]["bases"].insert(
        0, "LookupError"
    ),
    "a new command": lambda it: it["commands"].update({"tasks ls": it["commands"]["tasks list"]}),
    "a new option": lambda it: it["commands"]["tasks create"]["options"].update({"--x": _option(it)}),
    "a new setting": lambda it: it["settings"].append("X"),
    "a new extra and a new Python": lambda it: (it["extras"].append("x"), it["pythons"].append("3.15")),
    "an exit code more": lambda it: it["exit codes"].update(BUSY=7),
}


@pytest.mark.parametrize("change", BREAKS)
def test_what_would_break_a_program_is_found(released: Surface, change: str) -> None:
    changed = copy.deepcopy(released)
    BREAKS[change](changed)
    assert changed != released
    assert find_breaks(released, changed)


@pytest.mark.parametrize("change", ALLOWED)
def test_what_may_come_is_no_break(released: Surface, change: str) -> None:
    changed = copy.deepcopy(released)
    ALLOWED[change](changed)
    assert find_breaks(released, changed) == []
