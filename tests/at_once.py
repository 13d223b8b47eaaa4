"""Tests at once: one process collects them all, and forks off others that run them, file by file.

    python -m pytest -p tests.at_once --at-once 6

Collecting takes longer than most files do. One that dies fails its test, and another goes on behind it.
"""

import atexit
import contextlib
import itertools
import os
import threading
import traceback
from collections import deque
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NoReturn

import pytest

NEXT, BEGUN, REPORT, BROKEN, END = "next", "begun", "report", "broken", "end"
FAILED = 1

Tests = Sequence[pytest.Item]


def pytest_addoption(parser: pytest.Parser) -> None:
    told = "run so many files at once, by processes that are forked off when all tests are collected"
    parser.addoption("--at-once", type=int, default=0, metavar="N", help=told)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    config = session.config
    most = min(config.getoption("--at-once"), len({item.path for item in session.items}))
    if most < 2 or session.testsfailed or config.option.collectonly:
        return None
    Foreman(session).run(most)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


class Hand:
    """A process that runs tests, as seen by the one that gives them out."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ahead: deque[pytest.Item] = deque()
        """What it was given and has not begun."""
        self.begun: pytest.Item | None = None
        self.ended = False


class Foreman:
    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._config = session.config
        files = itertools.groupby(session.items, key=lambda item: item.path)
        self._files: deque[Tests] = deque(list(tests) for _, tests in files)
        self._hands: dict[Any, Hand] = {}
        self._numbers = itertools.count(1)
        self._folder: Path = tmp_path_factory(self._config).getbasetemp()
        # What was written while tests were collected is nobody's.
        capture_manager(self._config).read_global_capture()

    def run(self, most: int) -> None:
        try:
            for _ in range(most):
                self._take_on()
            while self._hands:
                for line in wait(list(self._hands)):
                    self._hear(line)
        finally:
            # Those that are left see that nobody listens.
            for line, hand in self._hands.items():
                line.close()
                os.waitpid(hand.pid, 0)

    def _take_on(self) -> None:
        ours, theirs = Pipe()
        folder = self._folder / f"at-once-{next(self._numbers)}"
        pid = os.fork()
        if not pid:
            for line in (ours, *self._hands):
                line.close()
            Working(self._session, theirs).live(folder)
        theirs.close()
        self._hands[ours] = Hand(pid)

    def _hear(self, line: Any) -> None:
        hand = self._hands[line]
        try:
            what, told = line.recv()
        except (EOFError, ConnectionResetError):
            self._miss(line, hand)
            return
        if what == NEXT:
            tests = self._files.popleft() if self._files else ()
            hand.ahead.extend(tests)
            self._give(line, tests)
        elif what == BEGUN:
            hand.begun = hand.ahead.popleft()
        elif what == REPORT:
            self._report(self._config.hook.pytest_report_from_serializable(config=self._config, data=told))
        elif what == END:
            hand.ended = True
        else:
            raise RuntimeError(told)

    def _give(self, line: Any, tests: Tests) -> None:
        """What a process is to run next: nothing ends it. One that is gone is missed soon."""
        with contextlib.suppress(BrokenPipeError):
            line.send([item.nodeid for item in tests])

    def _report(self, report: pytest.TestReport) -> None:
        self._config.hook.pytest_runtest_logreport(report=report)
        if self._session.shouldfail or self._session.shouldstop:
            self._files.clear()
            for line in self._hands:
                self._give(line, ())

    def _miss(self, line: Any, hand: Hand) -> None:
        """One is gone."""
        del self._hands[line]
        line.close()
        _, status = os.waitpid(hand.pid, 0)
        if hand.ended:
            return
        if hand.begun is None:
            raise RuntimeError(f"a process died before its first test: {status}")
        nodeid, location = hand.begun.nodeid, hand.begun.location
        how = f"the process that ran it died: {os.waitstatus_to_exitcode(status)}"
        self._report(pytest.TestReport(nodeid, location, {}, "failed", how, "call"))
        if hand.ahead:
            self._files.appendleft(list(hand.ahead))
        if self._files:
            self._take_on()


class Working:
    """The life of a process that runs tests."""

    def __init__(self, session: pytest.Session, line: Any) -> None:
        self._session = session
        self._config = session.config
        self._tests = {item.nodeid: item for item in session.items}
        self._line = line

    def live(self, folder: Path) -> NoReturn:
        code = FAILED
        try:
            self._settle(folder)
            try:
                self._work()
            finally:
                self._session._setupstate.teardown_exact(None)
            self._line.send((END, None))
            code = 0
        except Exception:  # noqa: BLE001 - nobody else hears of it
            self._line.send((BROKEN, traceback.format_exc()))
        finally:
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
            os._exit(code)

    def _settle(self, folder: Path) -> None:
        """Have folders and output of its own."""
        folder.mkdir(mode=0o700)
        tmp_path_factory(self._config)._basetemp = folder
        capturing = capture_manager(self._config)
        capturing.stop_global_capturing()
        capturing.start_global_capturing()
        capturing.suspend_global_capture()
        terminal: Any = self._config.pluginmanager.getplugin("terminalreporter")
        terminal._tw._file = Path(os.devnull).open("w")  # noqa: SIM115 - as long as the process lasts
        self._config.pluginmanager.register(self, "at once")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._line.send((REPORT, told))

    def _work(self) -> None:
        """The last test of a file leaves what the next one needs, so that is asked for before."""
        tests = self._ask()
        while tests:
            item = tests.popleft()
            if not tests:
                tests = self._ask()
            self._line.send((BEGUN, None))
            self._config.hook.pytest_runtest_protocol(item=item, nextitem=tests[0] if tests else None)
            if self._line.poll() or self._session.shouldfail or self._session.shouldstop:
                return

    def _ask(self) -> deque[pytest.Item]:
        self._line.send((NEXT, None))
        return deque(self._tests[each] for each in self._line.recv())


def tmp_path_factory(config: pytest.Config) -> Any:
    found: Any = config
    return found._tmp_path_factory


def capture_manager(config: pytest.Config) -> Any:
    return config.pluginmanager.getplugin("capturemanager")
