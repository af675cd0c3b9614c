"""What one SQLite file promises to the stores that live in it."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from jianmu.errors import CheckpointFormatError, ConfigError, StorageError
from jianmu.storage.sqlite import SqliteFile
from jianmu.storage.sqlite_errors import is_damage


def first(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE item (n INTEGER PRIMARY KEY, text TEXT)")


def second(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE item ADD COLUMN note TEXT")


def open_file(path: Path, **kw: object) -> SqliteFile:
    options = {"application_id": 7, "migrations": [first]} | kw
    return SqliteFile(path, **options)  # type: ignore[arg-type]


def put(file: SqliteFile, n: int) -> None:
    file.write(lambda c: c.execute("INSERT INTO item (n, text) VALUES (?, 'x')", (n,)))


def numbers(file: SqliteFile) -> list[int]:
    return file.read(lambda c: [row[0] for row in c.execute("SELECT n FROM item ORDER BY n")])


def test_what_is_written_is_read_by_the_next_process(tmp_path: Path) -> None:
    with open_file(tmp_path / "deep" / "er" / "a.db") as file:
        put(file, 1)
    with open_file(tmp_path / "deep" / "er" / "a.db") as file:
        assert numbers(file) == [1]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no mode bits")
def test_files_and_folders_are_private(tmp_path: Path) -> None:
    with open_file(tmp_path / "new" / "deep" / "a.db") as file:
        put(file, 1)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.path.parent.iterdir()}
        assert modes == {"a.db": 0o600, "a.db-wal": 0o600, "a.db-shm": 0o600}
        for folder in ("new", "new/deep"):
            assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700


def test_an_error_in_the_work_is_raised_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO item (n) VALUES (1)")
        raise LookupError("mine")

    with open_file(tmp_path / "a.db") as file:
        with pytest.raises(LookupError, match="mine"):
            file.write(work)
        put(file, 2)
        assert numbers(file) == [2]


def test_threads_that_wait_together_commit_together_and_fail_alone(tmp_path: Path) -> None:
    with open_file(tmp_path / "a.db") as file:
        entered, may_go = threading.Event(), threading.Event()

        def slow(connection: sqlite3.Connection) -> None:
            entered.set()
            may_go.wait()

        def numbered(n: int) -> None:
            def work(connection: sqlite3.Connection) -> None:
                connection.execute("INSERT INTO item (n) VALUES (?)", (n,))
                if n % 5 == 0:
                    raise LookupError(n)

            file.write(work)

        with ThreadPoolExecutor(33) as pool:
            leader = pool.submit(file.write, slow)
            entered.wait()
            others = [pool.submit(numbered, n) for n in range(32)]
            while len(file._commits._queue) < 32:  # the only way to see that all of them wait
                pass
            may_go.set()
            leader.result()
            failed = [n for n, job in enumerate(others) if isinstance(job.exception(), LookupError)]
        assert failed == [0, 5, 10, 15, 20, 25, 30]
        assert numbers(file) == [n for n in range(32) if n % 5]


def test_a_failed_neighbour_does_not_fail_the_others(tmp_path: Path) -> None:
    with open_file(tmp_path / "a.db") as file:
        entered, may_go = threading.Event(), threading.Event()

        def slow(connection: sqlite3.Connection) -> None:
            entered.set()
            may_go.wait()

        def twice(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO item (n) VALUES (100), (100)")

        with ThreadPoolExecutor(8) as pool:
            leader = pool.submit(file.write, slow)
            entered.wait()
            bad = pool.submit(file.write, twice)
            good = [pool.submit(put, file, n) for n in range(5)]
            while len(file._commits._queue) < 6:
                pass
            may_go.set()
            leader.result()
            assert isinstance(bad.exception(), StorageError)
            for job in good:
                job.result()
        assert numbers(file) == [0, 1, 2, 3, 4]


def test_a_reader_keeps_its_view_while_a_writer_goes_on(tmp_path: Path) -> None:
    with open_file(tmp_path / "a.db") as file:

        def look_twice(connection: sqlite3.Connection) -> tuple[int, int]:
            count = "SELECT count(*) FROM item"
            before = connection.execute(count).fetchone()[0]
            put(file, 1)
            return before, connection.execute(count).fetchone()[0]

        assert file.read(look_twice) == (0, 0)
        assert numbers(file) == [1]


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    with open_file(tmp_path / "a.db") as file, pytest.raises(StorageError):
        file.read(lambda c: c.execute("INSERT INTO item (n) VALUES (1)"))


def test_migrations_run_once_and_forward(tmp_path: Path) -> None:
    with open_file(tmp_path / "a.db") as file:
        put(file, 1)
    with open_file(tmp_path / "a.db", migrations=[first, second]) as file:
        assert file.read(lambda c: c.execute("SELECT n, text, note FROM item").fetchall()) == [(1, "x", None)]
    with open_file(tmp_path / "a.db", migrations=[first, second]) as file:
        assert numbers(file) == [1]


def test_a_migration_that_fails_leaves_the_old_version(tmp_path: Path) -> None:
    def broken(connection: sqlite3.Connection) -> None:
        second(connection)
        raise LookupError("no")

    open_file(tmp_path / "a.db").close()
    with pytest.raises(LookupError):
        open_file(tmp_path / "a.db", migrations=[first, broken])
    with open_file(tmp_path / "a.db") as file:
        put(file, 1)


def test_a_newer_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    open_file(tmp_path / "a.db", migrations=[first, second]).close()
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(CheckpointFormatError, match=r"a\.db has schema version 2.*upgrade"):
        open_file(tmp_path / "a.db", newer=CheckpointFormatError)
    assert (tmp_path / "a.db").read_bytes() == before


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as foreign:
        foreign.execute("CREATE TABLE somebody_elses (n)")
    with pytest.raises(StorageError, match="another kind"):
        open_file(tmp_path / "a.db")
    (tmp_path / "b.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StorageError, match="no SQLite file") as caught:
        open_file(tmp_path / "b.db")
    assert is_damage(caught.value)


def test_one_file_holds_several_kinds_with_versions_of_their_own(tmp_path: Path) -> None:
    def other(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE other (n)")

    with open_file(tmp_path / "a.db", migrations=[first, second]) as one:
        with open_file(tmp_path / "a.db", application_id=8, migrations=[other]) as two:
            put(one, 1)
            two.write(lambda c: c.execute("INSERT INTO other VALUES (2)"))
        assert numbers(one) == [1]
    with open_file(tmp_path / "a.db", application_id=8, migrations=[other]) as two:
        assert two.read(lambda c: c.execute("SELECT n FROM other").fetchall()) == [(2,)]


@pytest.mark.parametrize("name", ["", ":memory:", "file:x?mode=memory", "a\0b"])
def test_a_path_that_names_no_file_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        open_file(name)  # type: ignore[arg-type]


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'fsync' or 'flush', not 'never'"):
        open_file(tmp_path / "a.db", durability="never")


def test_a_lock_held_elsewhere_is_waited_for_and_then_named(tmp_path: Path) -> None:
    with open_file(tmp_path / "a.db", timeout=0.05) as file:
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match=r"a\.db was locked by another process for more than 0\.05 s"):
            put(file, 1)
        other.execute("ROLLBACK")
        other.close()
        put(file, 1)
        assert numbers(file) == [1]


def test_a_closed_file_says_so_and_closing_twice_is_fine(tmp_path: Path) -> None:
    file = open_file(tmp_path / "a.db")
    file.close()
    file.close()
    with pytest.raises(StorageError, match="closed"):
        put(file, 1)
    with pytest.raises(StorageError, match="closed"):
        numbers(file)


def test_deleted_rows_give_their_space_back(tmp_path: Path) -> None:
    with open_file(tmp_path / "a.db") as file:
        file.write(lambda c: c.execute("INSERT INTO item VALUES (1, ?)", ("x" * 1_000_000,)))
        file.write(lambda c: c.execute("DELETE FROM item"))
        file.shrink()
    assert (tmp_path / "a.db").stat().st_size < 100_000


WRITER = """
import sys; sys.path.insert(0, {folder!r})
from test_sqlite_file import open_file, put
from pathlib import Path
with open_file(Path({path!r})) as file:
    for n in range({start}, {start} + 50):
        put(file, n)
"""


def test_several_processes_open_and_write_one_file_at_once(tmp_path: Path) -> None:
    folder, path = str(Path(__file__).parent), str(tmp_path / "a.db")
    workers = [
        subprocess.Popen([sys.executable, "-c", WRITER.format(folder=folder, path=path, start=n * 50)])
        for n in range(4)
    ]
    assert [worker.wait() for worker in workers] == [0, 0, 0, 0]
    with open_file(tmp_path / "a.db") as file:
        assert numbers(file) == list(range(200))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_a_forked_child_and_its_parent_both_go_on(tmp_path: Path) -> None:
    with open_file(tmp_path / "a.db") as file:
        put(file, 1)
        child = multiprocessing.get_context("fork").Process(target=put, args=(file, 2))
        child.start()
        child.join()
        assert child.exitcode == 0
        put(file, 3)
        assert numbers(file) == [1, 2, 3]


@pytest.mark.skipif(os.name != "posix", reason="needs a timer signal")
def test_a_writer_interrupted_while_it_waits_leaves_the_others_going(tmp_path: Path) -> None:
    file = open_file(tmp_path / "f.db")
    leading, go_on = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        leading.set()
        go_on.wait()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    leader = threading.Thread(target=lambda: file.write(slow))
    leader.start()
    leading.wait()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            put(file, 1)
    finally:
        signal.signal(signal.SIGALRM, before)
    go_on.set()
    leader.join()
    put(file, 2)
    assert numbers(file) == [2]


def test_work_of_one_kind_is_done_together_and_one_by_one_when_that_fails(tmp_path: Path) -> None:
    file = open_file(tmp_path / "f.db")
    leading, go_on = threading.Event(), threading.Event()
    together: list[int] = []
    refused: dict[int, bool] = {}

    def slow(connection: sqlite3.Connection) -> None:
        leading.set()
        go_on.wait()

    def bulk(connection: sqlite3.Connection, items: Sequence[int]) -> bool:
        together.append(len(items))
        values = ", ".join(["(?)"] * len(items))
        sql = f"INSERT OR IGNORE INTO item (n) SELECT column1 FROM (VALUES {values})"
        return connection.execute(f"{sql} WHERE column1 NOT IN (13, 15)", items).rowcount == len(items)

    def write(item: int) -> None:
        refused[item] = not file.write(lambda connection: bulk(connection, [item]), bulk=bulk, item=item)

    for items in ([1, 2, 3, 4], [13, 14, 15, 16]):
        leading.clear()
        go_on.clear()
        threads = [threading.Thread(target=lambda: file.write(slow))]
        threads[0].start()
        leading.wait()
        threads += [threading.Thread(target=write, args=(item,)) for item in items]
        for thread in threads[1:]:
            thread.start()
        while len(file._commits._queue) < 4:
            time.sleep(0)
        go_on.set()
        for thread in threads:
            thread.join()
    assert together == [4, 4, 1, 1, 1, 1]
    assert numbers(file)[:4] == [1, 2, 3, 4]
    assert set(numbers(file)[4:]) == {14, 16}
    assert {13, 15} <= {item for item, was in refused.items() if was} <= {13, 14, 15, 16}


@pytest.mark.parametrize("place", range(4))
def test_a_waiting_thread_that_is_interrupted_does_not_leave_those_behind_it_asleep(
    tmp_path: Path, place: int
) -> None:
    file = open_file(tmp_path / "f.db")
    leading, go_on = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        leading.set()
        go_on.wait()

    leader = threading.Thread(target=lambda: file.write(slow))
    leader.start()
    leading.wait()
    caught: list[type[BaseException]] = []

    def write(item: int) -> None:
        try:
            put(file, item)
        except KeyboardInterrupt as error:
            caught.append(type(error))

    waiting = [threading.Thread(target=write, args=(item,)) for item in range(4)]
    for at, thread in enumerate(waiting):
        thread.start()
        while len(file._commits._queue) <= at:
            time.sleep(0)
    raise_in(waiting[place], KeyboardInterrupt)
    go_on.set()
    for thread in (leader, *waiting):
        thread.join(20)
        assert not thread.is_alive()
    assert len(numbers(file)) >= 3
    put(file, 9)


def raise_in(thread: threading.Thread, error: type[BaseException]) -> None:
    """Raise in another thread as soon as it runs Python again."""
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(error))
