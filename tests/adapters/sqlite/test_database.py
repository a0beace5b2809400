"""What writers that share transactions are promised: each hears of its own part, and only when that is on disk."""

from __future__ import annotations

import itertools
import signal
import sqlite3
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.harness import WAIT_SECONDS, wait_until

from cloudsched.adapters.sqlite import database
from cloudsched.adapters.sqlite.database import GroupCommit, WriteUnit


class Connection:
    """A SQLite connection in memory whose statements a test can see, and hold up."""

    def __init__(self, before: Callable[[str], None] = lambda _: None) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.execute("CREATE TABLE numbers (number INTEGER PRIMARY KEY)")
        weakref.finalize(self, self._connection.close)
        self._before = before
        self.statements: list[str] = []

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        self._before(statement)
        self.statements.append(statement)
        return self._connection.execute(statement, *values)

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def numbers(self) -> set[int]:
        return {number for (number,) in self._connection.execute("SELECT number FROM numbers")}


def open_group(connection: Connection) -> GroupCommit:
    return GroupCommit(connection, threading.Lock())  # type: ignore[arg-type]  # all that it calls


def insert(*numbers: int) -> Callable[[sqlite3.Connection], int]:
    """Return work that inserts numbers; it fails at the first one that is there."""

    def work(connection: sqlite3.Connection) -> int:
        for number in numbers:
            connection.execute("INSERT INTO numbers VALUES (?)", (number,))
        return sum(numbers)

    return work


class Blocked:
    """A writer whose work does not end before `release` is called; the writers that come meanwhile share a group."""

    def __init__(self, group: GroupCommit) -> None:
        self._is_writing, self._may_end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=group.run, args=([self._block],))
        self._thread.start()
        assert self._is_writing.wait(WAIT_SECONDS)

    def _block(self, _: object) -> None:
        self._is_writing.set()
        assert self._may_end.wait(WAIT_SECONDS)

    def release(self) -> None:
        self._may_end.set()
        self._thread.join(WAIT_SECONDS)


def run(group: GroupCommit, work: Callable[[sqlite3.Connection], int]) -> int:
    (unit,) = group.run([work])
    if unit.error is not None:
        raise unit.error
    return unit.result or 0


def start_writers(group: GroupCommit, *works: Callable[[sqlite3.Connection], int]) -> list[Any]:
    """Start writers in this order, each in a thread; return a list that gets what each was answered."""
    answers: list[Any] = [None] * len(works)

    def write(place: int) -> None:
        (unit,) = group.run([works[place]])
        answers[place] = unit.failure or (unit.result if unit.error is None else type(unit.error))

    for place in range(len(works)):
        threading.Thread(target=write, args=(place,), daemon=True).start()
        wait_until(lambda expected=place + 1: group.waiting == expected)  # type: ignore[misc]  # its default
    return answers


def test_nobody_is_answered_before_the_commit() -> None:
    """All that share a transaction wait until it is committed, whoever runs it."""
    commits, is_committing, may_commit = itertools.count(1), threading.Event(), threading.Event()

    def before(statement: str) -> None:
        if statement == "COMMIT" and next(commits) == 2:
            is_committing.set()
            assert may_commit.wait(WAIT_SECONDS)

    connection = Connection(before)
    group = open_group(connection)
    blocked = Blocked(group)
    answers = start_writers(group, insert(1), insert(2), insert(3))
    blocked.release()
    assert is_committing.wait(WAIT_SECONDS)
    threading.Event().wait(0.05)  # so that an answer that came too early would have arrived
    assert answers == [None, None, None]
    may_commit.set()
    wait_until(lambda: None not in answers)
    assert answers == [1, 2, 3]
    assert connection.statements.count("COMMIT") == 2, "the three share one transaction"


def test_what_fails_undoes_only_itself() -> None:
    """A part that fails leaves nothing behind, whatever it had written before; the others are kept."""
    connection = Connection()
    group = open_group(connection)
    blocked = Blocked(group)
    answers = start_writers(group, insert(1), insert(2, 3, 1), insert(4))
    blocked.release()
    wait_until(lambda: None not in answers)
    assert answers == [1, sqlite3.IntegrityError, 4]
    assert connection.numbers() == {1, 4}


def test_what_is_done_again_is_answered_for_the_last_time() -> None:
    """After a failure all parts are done again; one that succeeds then counts as if it had never failed."""
    tries = itertools.count(1)

    def fail_first(connection: sqlite3.Connection) -> int:
        insert(5)(connection)
        if next(tries) == 1:
            raise sqlite3.OperationalError("try again")
        return 5

    connection = Connection()
    group = open_group(connection)
    blocked = Blocked(group)
    answers = start_writers(group, insert(1), fail_first)
    blocked.release()
    wait_until(lambda: None not in answers)
    assert answers == [1, 5]
    assert connection.numbers() == {1, 5}


def test_while_parts_fail_nothing_is_done_twice() -> None:
    """Where many compete, every transaction has a part that fails: only the first one is repeated for it."""
    connection = Connection()
    group = open_group(connection)
    repeated = []
    for works in [insert(1), insert(1)], [insert(2), insert(2)], [insert(3), insert(4)], [insert(5), insert(6)]:
        blocked = Blocked(group)
        answers = start_writers(group, *works)
        connection.statements.clear()
        blocked.release()
        wait_until(lambda answers=answers: None not in answers)  # type: ignore[misc]  # its default
        repeated.append(connection.statements.count("ROLLBACK"))
        has_savepoints = "SAVEPOINT unit" in connection.statements
        assert has_savepoints is (len(repeated) < 4), "the fourth comes after one without a failure"
    assert repeated == [1, 0, 0, 0]
    assert connection.numbers() == {1, 2, 3, 4, 5, 6}


def test_what_fails_alone_leaves_nothing() -> None:
    """A part that fails in a transaction of its own is rolled back with it, and the next one is not concerned."""
    connection = Connection()
    group = open_group(connection)
    with pytest.raises(sqlite3.IntegrityError):
        run(group, insert(1, 2, 1))
    assert connection.numbers() == set()
    assert run(group, insert(1)) == 1


def test_a_commit_that_fails_fails_for_all_of_it() -> None:
    """If the disk is full, everybody in the transaction hears so, nothing of it is kept, and the next one is tried."""
    is_full = False

    def before(statement: str) -> None:
        if is_full and statement == "COMMIT":
            raise sqlite3.OperationalError("disk full")

    connection = Connection(before)
    group = open_group(connection)
    blocked = Blocked(group)
    answers = start_writers(group, insert(1), insert(2))
    is_full = True
    blocked.release()
    wait_until(lambda: None not in answers)
    assert answers == ["disk full", "disk full"]
    is_full = False
    assert connection.numbers() == set()
    assert run(group, insert(3)) == 3


def test_all_of_many_writers_are_answered() -> None:
    """Nobody is forgotten when leading passes from one writer to the next."""
    connection = Connection()
    group = open_group(connection)
    answers: list[int] = []

    def write(first: int) -> None:
        answers.extend(run(group, insert(number)) for number in range(first, first + 100))

    threads = [threading.Thread(target=write, args=(1000 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert len(answers) == 800
    assert connection.numbers() == set(answers)


def test_no_transaction_has_more_than_the_most_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of seven that wait, three share the next transaction, then three, then one; all are answered, in their order."""
    monkeypatch.setattr(database, "MAX_GROUP_SIZE", 3)
    connection = Connection()
    group = open_group(connection)
    blocked = Blocked(group)
    answers = start_writers(group, *map(insert, range(7)))
    blocked.release()
    wait_until(lambda: None not in answers)
    wait_until(lambda: connection.statements.count("COMMIT") == 4)
    assert answers == list(range(7))
    parts = " ".join(connection.statements).split("COMMIT")
    assert [part.count("INSERT") for part in parts] == [0, 3, 3, 1, 0]


def test_one_that_is_interrupted_while_it_commits_for_others_tells_them() -> None:
    """They hear that it failed, so that nobody waits for ever; nothing is kept, and the next one is served."""
    connection = Connection()
    group = open_group(connection)
    blocked = Blocked(group)
    interrupted = threading.Event()

    def interrupt(_: sqlite3.Connection) -> int:
        raise KeyboardInterrupt

    def write() -> None:
        with pytest.raises(KeyboardInterrupt):
            group.run([interrupt])
        interrupted.set()

    threading.Thread(target=write, daemon=True).start()
    wait_until(lambda: group.waiting == 1)
    answers: list[str | None] = []
    for number in (1, 2):
        threading.Thread(target=lambda n=number: answers.append(group.run([insert(n)])[0].failure), daemon=True).start()
        wait_until(lambda expected=number + 1: group.waiting == expected)  # type: ignore[misc]  # its default
    blocked.release()
    assert interrupted.wait(WAIT_SECONDS)
    wait_until(lambda: len(answers) == 2)
    assert answers == ["the thread that was committing was interrupted"] * 2
    assert connection.numbers() == set()
    assert run(group, insert(3)) == 3


def test_nothing_to_write_waits_for_nobody() -> None:
    """Not even while another thread commits: nobody would wake one that has no part in a transaction."""
    group = open_group(Connection())
    blocked, answers = Blocked(group), list[object]()
    threading.Thread(target=lambda: answers.append(group.run([])), daemon=True).start()
    wait_until(lambda: answers == [[]])
    blocked.release()
    assert run(group, insert(1)) == 1


def test_one_that_is_interrupted_while_it_takes_what_waits_holds_up_nobody() -> None:
    """Ctrl+C just before a transaction begins: each of the others is told, or served."""
    connection = Connection()
    group = open_group(connection)
    blocked = Blocked(group)

    class Interrupted(deque[WriteUnit[Any]]):
        """What waits, whose third part is not taken, since a signal comes."""

        def popleft(self) -> WriteUnit[Any]:
            if len(self) < 2:
                raise KeyboardInterrupt
            return super().popleft()

    answers: list[object] = []

    def write(number: int) -> None:
        try:
            answers.append(group.run([insert(number)])[0].failure)
        except KeyboardInterrupt:
            answers.append(KeyboardInterrupt)

    for number in (1, 2, 3):
        threading.Thread(target=write, args=(number,), daemon=True).start()
        wait_until(lambda expected=number: group.waiting == expected)  # type: ignore[misc]  # its default
    group._waiting = Interrupted(group._waiting)  # noqa: SLF001 - from inside
    blocked.release()
    wait_until(lambda: len(answers) == 3)


@pytest.mark.skipif(sys.platform == "win32", reason="it sends itself a signal")
def test_an_interrupted_writer_holds_up_nobody() -> None:
    """Ctrl+C while it waits for its turn: those behind it are served, and those that come later as well."""
    connection = Connection()
    group = open_group(connection)
    blocked = Blocked(group)

    heard: list[int] = []

    def hear(signum: int, _: object) -> None:
        heard.append(signum)
        if len(heard) == 1:
            raise KeyboardInterrupt

    def interrupt() -> None:
        wait_until(lambda: group.waiting == 1)
        while not heard:  # Python overlooks a signal that comes just before a thread begins to wait
            threading.Event().wait(0.05)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    usual = signal.signal(signal.SIGINT, hear)
    try:
        interrupter = threading.Thread(target=interrupt, daemon=True)
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            group.run([insert(1)])
        interrupter.join(WAIT_SECONDS)
    finally:
        signal.signal(signal.SIGINT, usual)
    answers = start_writers(group, insert(2))
    blocked.release()
    wait_until(lambda: None not in answers)
    assert run(group, insert(3)) == 3
    assert connection.numbers() == {2, 3}


def test_a_full_disk_fails_all_of_a_group_and_is_named() -> None:
    """SQLite ends the whole transaction then: none of it is kept, all are told why, and the next one succeeds."""
    connection = Connection()
    group = open_group(connection)
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    blocked, failures = Blocked(group), list[str | None]()

    def write(*numbers: int) -> None:
        failures.append(group.run([insert(*numbers)])[0].failure)

    threads = [threading.Thread(target=write, args=numbers) for numbers in ((1,), tuple(range(2, 5_000)))]
    for thread in threads:
        thread.start()
    wait_until(lambda: group.waiting == len(threads))
    blocked.release()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert failures == ["database or disk is full"] * 2
    assert connection.numbers() == set()
    connection.execute("PRAGMA max_page_count = 100000").fetchall()
    assert run(group, insert(3)) == 3


_KILLED_BEFORE_COMMIT = """
import os, signal, sys, threading
from pathlib import Path
from cloudsched.adapters.sqlite.database import SqliteDatabase

class Connection:
    def __init__(self, connection):
        self._connection = connection
    def execute(self, statement, *values):
        if statement == "COMMIT" and dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return self._connection.execute(statement, *values)
    in_transaction = property(lambda self: self._connection.in_transaction)

dies = False
database = SqliteDatabase(Path(sys.argv[1]), ["CREATE TABLE numbers (number INTEGER PRIMARY KEY)"], 1)
database._commits._connection = Connection(database._commits._connection)

def insert(number):
    database.write(lambda connection: connection.execute("INSERT INTO numbers VALUES (?)", (number,)))
    print(number, flush=True)

insert(1)
started, go_on = threading.Event(), threading.Event()
threading.Thread(target=database.write, args=(lambda _: (started.set(), go_on.wait(60)),)).start()
started.wait(60)
threads = [threading.Thread(target=insert, args=(number,)) for number in (2, 3)]
for thread in threads:
    thread.start()
while database._commits.waiting < 2:
    threading.Event().wait(0.001)
dies = True
go_on.set()
for thread in threads:
    thread.join()
"""


def test_a_crash_before_the_commit_loses_only_what_was_not_answered(tmp_path: Path) -> None:
    """The process dies when a whole group is applied and not yet committed: none of it was answered, none is there."""
    path = tmp_path / "numbers.db"
    process = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _KILLED_BEFORE_COMMIT, str(path)], capture_output=True, text=True, check=False
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert process.stdout.split() == ["1"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT number FROM numbers").fetchall() == [(1,)]
