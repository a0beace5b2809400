"""Models are built when they are first used, and not by imports. Many threads may be the first at once."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta

from cloudsched import Schedule
from cloudsched.testing import Simulation

USE = """
import gc, json, sys, threading, time
import cloudsched.app
from pydantic._internal import _model_construction
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.json_limits import reject_masked_secrets
from cloudsched.domain.documents.task import PublicTask, Task
from cloudsched.domain.transitions.suspend import _EVENT_NAME

built = [str(each) for each in gc.get_objects() if type(each) is type(Task) and each.__pydantic_complete__]
complete = _model_construction.complete_model_class

def complete_slowly(*arguments, **options):
    time.sleep(0.01)  # lets the other threads see the model while it is being built
    return complete(*arguments, **options)

_model_construction.complete_model_class = complete_slowly
task, execution = json.load(sys.stdin)
THREADS = 8
barrier = threading.Barrier(THREADS)
seen, errors = [], []

def use(number):
    barrier.wait()
    try:
        turn = [
            lambda: Task.model_validate(task).to_wire(),
            lambda: Execution.model_validate(execution).to_wire(),
            lambda: _EVENT_NAME.validate_python("paid"),
            lambda: reject_masked_secrets("result", {"a": "**********"}, {"a": "**********"}),
            lambda: json.loads(Task.model_validate_json(json.dumps(task)).model_dump_json(by_alias=True)),
        ]
        turn = turn[number % len(turn):] + turn[: number % len(turn)]
        done = [step() for step in turn]
        back = len(turn) - number % len(turn)
        seen.append(json.dumps((done[back:] + done[:back])[:4], sort_keys=True, default=str))
    except BaseException as error:
        errors.append(repr(error)[:300])

threads = [threading.Thread(target=use, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps([errors + built, len(seen), sorted(set(seen))]))
"""


def test_threads_may_be_the_first_together(sim: Simulation) -> None:
    """A new process whose first requests come at once reads and writes each document whole in every one of them."""

    @sim.app.handler("note")
    def note(payload: dict[str, str]) -> str:
        return payload["text"]

    schedule = Schedule(rrule="FREQ=YEARLY", dtstart="2027-06-01T09:00:00", timezone="UTC")
    task = sim.app.create(owner="ada", handler="note", payload={"text": "x"}, schedule=schedule)
    sim.advance(timedelta(days=366))
    (execution,) = sim.app.executions(task.id).items
    documents = json.dumps([sim.app.get(task.id).to_wire(), execution.to_wire()])
    done = subprocess.run(  # noqa: S603 - our own interpreter, our own script
        (sys.executable, "-c", USE), input=documents, capture_output=True, text=True, check=True
    )
    errors, count, seen = json.loads(done.stdout)
    assert errors == []
    assert (count, len(seen)) == (8, 1)
