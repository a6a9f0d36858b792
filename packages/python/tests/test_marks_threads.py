"""Goal: marks and returns beside threads that change the heap and commit: nothing is lost, nobody waits for ever. Method:
threads that move amounts, whose sum is always the same; signals while a mark waits."""

import signal
import threading

import pytest
import taiyen
from conftest import EFFORT
from test_interruptions import run, run_at_once
from test_marks import made


def test_marks_wait_for_transactions_without_the_gil(path):
    """A thread that has the heap goes on, and ends its transaction, while another one waits to mark it."""
    heap = taiyen.open(path, kind="transactional", log_bytes=1 << 20)
    heap.mark("one")
    begun, asked = threading.Event(), threading.Event()

    def other():
        with heap.transaction():
            heap.root["x"] = 1
            begun.set()
            asked.wait()
            for _ in range(1000):
                heap.root["x"] += 1

    for call in (lambda: heap.mark("two"), lambda: heap.return_to("one"), lambda: heap.attempt().__enter__().keep()):
        begun.clear()
        asked.clear()
        thread = threading.Thread(target=other)
        thread.start()
        begun.wait()
        asked.set()
        call()
        thread.join()
    heap.return_to("two")
    assert heap.root == {"x": 1001}
    heap.return_to("one")
    assert heap.root == {} and heap.verify() == []
    heap.close()


@pytest.mark.parametrize("threads", [1, 6])
def test_a_mark_is_served_in_its_order(path, threads):
    """Beside threads that always have the next transaction ready."""
    heap = taiyen.open(path, kind="transactional", log_bytes=1 << 20)
    heap.root.update({number: 0 for number in range(threads)})
    done, commits = threading.Event(), [0] * threads

    def commit(number):
        while not done.is_set():
            with heap.transaction(wait=False):
                heap.root[number] += 1
                done.wait(0.001)
            commits[number] += 1

    most = 0

    def marks():
        nonlocal most
        try:
            for number in range(20):
                before = sum(commits)
                heap.mark(f"{number}")
                most = max(most, sum(commits) - before)
                heap.drop_mark(f"{number}")
        finally:
            done.set()

    workers = [threading.Thread(target=commit, args=(number,)) for number in range(threads)] + [threading.Thread(target=marks)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert most <= 3 * threads + 3, most  # those that waited already go first
    assert heap.root == dict(enumerate(commits)) and heap.verify() == []
    heap.close()


def test_threads_commit_beside_returns(path):
    """Money goes from account to account in each transaction, in whatever state of the heap that is."""
    heap = taiyen.open(path, kind="transactional", log_bytes=1 << 20)
    heap.root["accounts"] = {number: 100 for number in range(8)}
    heap.mark("start")
    wrong, busy = [], 4

    def pays(number):
        nonlocal busy
        try:
            for turn in range(int(60 * EFFORT)):
                with heap.transaction(wait=False):
                    accounts = heap.root["accounts"]
                    accounts[number] -= 1
                    accounts[(number + turn) % 8] += 1
                heap.root[f"note {number}"] = [turn] * 3  # one by itself
                heap.root["accounts"].get(number)
        except BaseException as error:
            wrong.append(error)
        busy -= 1

    def goes():
        turn = 0
        try:
            while busy:
                turn += 1
                with heap.attempt() as tried:
                    if turn % 2:
                        tried.go_back()
                if turn % 5 == 0:
                    heap.mark("here")
                    heap.return_to("start")
                    assert sum(taiyen.plain(heap.root["accounts"]).values()) == 800
                    heap.return_to("here")
                    heap.drop_mark("here")
        except BaseException as error:
            wrong.append(error)

    run_at_once(*(lambda number=number: pays(number) for number in range(4)), goes)
    assert wrong == [] and heap.verify() == []
    assert sum(heap.root["accounts"].values()) == 800
    heap.discard()
    with taiyen.open(path) as heap:
        assert sum(heap.root["accounts"].values()) == 800


@pytest.mark.parametrize("kind", ["volatile", "snapshot", "undo"])
def test_threads_change_beside_returns(kind, path):
    """PY13, PY38. A change is in a state whole, or not at all."""
    heap = made(kind, path)
    heap.root["list"] = []
    heap.mark("start")
    wrong, busy = [], 3

    def adds(number):
        nonlocal busy
        try:
            for turn in range(int(150 * EFFORT)):
                try:
                    heap.root["list"].extend([[number, turn], {"number": number}, (turn, [number])])
                except (taiyen.DeletedError, RuntimeError):
                    pass  # the list was gone, or what was made for it
        except BaseException as error:
            wrong.append(error)
        busy -= 1

    def goes():
        try:
            while busy:
                heap.mark("here")
                heap.return_to("start")
                heap.return_to("here")
                heap.drop_mark("here")
                found = heap.root["list"][:]
                if len(found) % 3 or any(found[at + 1] != {"number": found[at][0]} for at in range(0, len(found), 3)):
                    wrong.append(found)
        except BaseException as error:
            wrong.append(error)

    run_at_once(*(lambda number=number: adds(number) for number in range(3)), goes)
    assert wrong == [] and heap.verify() == [] and len(heap.root["list"]) % 3 == 0
    heap.close()


def test_signals_are_heard_while_a_mark_waits(path):
    """PY15."""
    result = run('''
        import signal, sys, taiyen, threading
        heap = taiyen.open(sys.argv[1], kind="transactional", log_bytes=1 << 20)
        heap.mark("one")
        begun, end = threading.Event(), threading.Event()
        def other():
            with heap.transaction():
                begun.set()
                end.wait(60)
        thread = threading.Thread(target=other)
        thread.start()
        begun.wait()
        def on_alarm(*_): raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, on_alarm)
        for use in (lambda: heap.mark("two"), lambda: heap.return_to("one"), heap.attempt().__enter__):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            try:
                use()
            except KeyboardInterrupt:
                print("heard", [mark.name for mark in heap.marks()])
        end.set()
        thread.join()
        with heap.attempt():
            heap.root["y"] = 1
        heap.close()
    ''', path)
    assert result.stdout == "heard ['one']\n" * 3 and result.returncode == 0, result
