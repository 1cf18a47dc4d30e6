"""Plant one bug after the other into a copy of the source and see which test notices it.

    python tools/mutants.py [words of names ...]
    python tools/mutants.py --check               only see that every bug still fits the source

The bugs are in mutants.toml: a file of the package, a text that occurs there once, what takes its place, and the tests
that must fail. The working tree is only read. Exit code 0: every bug was noticed. Exit code 1: one survived. Exit
code 2: a bug does not fit the source, or its tests do not pass without it.
"""

import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

import beartype  # noqa: F401
import numpy  # noqa: F401
import pytest
import rich.progress  # noqa: F401
import safetensors.torch  # noqa: F401
import scipy.special  # noqa: F401
import torch
import torch._dynamo

torch.set_num_threads(1)
ROOT = Path(__file__).resolve().parents[1]
TIME_LIMIT = 120.0
PASSED, FAILED, NOT_THE_COPY, STUCK = 0, 1, 99, -int(signal.SIGKILL)


class Mutant(NamedTuple):
    """One bug. `tests` are arguments of pytest as on a command line, from the folder of the tests."""

    name: str
    file: str
    old: str
    new: str
    tests: str


class Verdict(NamedTuple):
    """`kind` is killed, SURVIVED or BROKEN; `detail` is the test that failed, those that did not, or the reason."""

    kind: str
    detail: str


class FirstFailure:
    """A plugin of pytest that writes down which test failed first."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.path.exists():
            self.path.write_text(report.nodeid.removeprefix("tests/"))


def run_tests(copy: Path, tests: list[str]) -> tuple[int, str]:
    """Run tests against the copy in a child process: its exit code, and the first test that failed.

    The child inherits the libraries that this process has imported, and imports sabre itself, from the copy.
    """
    first = copy / "first-failure"
    first.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os._exit(_child(copy, tests, first))
    status = _wait(child)
    return status, first.read_text() if first.exists() else ""


def _child(copy: Path, tests: list[str], first: Path) -> int:
    os.setpgid(0, 0)
    output = os.open(copy / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(copy / "tests")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(copy / "src"))
    os.environ |= {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    status = int(pytest.main(["-x", "-p", "no:cacheprovider", *tests], [FirstFailure(first)]))
    if "sabre" in sys.modules and not Path(str(sys.modules["sabre"].__file__)).is_relative_to(copy):
        print(f"sabre was imported from {sys.modules['sabre'].__file__}, which is not the copy", flush=True)
        return NOT_THE_COPY
    return status


def _wait(child: int) -> int:
    """The exit code of a child, which is killed with all that it has started when it takes too long."""
    end = time.monotonic() + TIME_LIMIT
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def judge(mutant: Mutant, copy: Path) -> Verdict:
    """Plant a bug, run its tests, take the bug out again."""
    if not fits(mutant, copy / "src" / "sabre"):
        return Verdict("BROKEN", f"its text does not occur exactly once in {mutant.file}")
    path = copy / "src" / "sabre" / mutant.file
    source = path.read_text()
    path.write_text(source.replace(mutant.old, mutant.new))
    status, first = run_tests(copy, shlex.split(mutant.tests))
    path.write_text(source)
    if status == FAILED and first:
        return Verdict("killed", first)
    if status == STUCK:
        return Verdict("BROKEN", f"still running after {TIME_LIMIT:.0f} s")
    if status == PASSED:
        return Verdict("SURVIVED", mutant.tests)
    last_lines = (copy / "output").read_text(errors="replace").splitlines()[-5:]
    return Verdict("BROKEN", f"pytest ended with {status}: {' / '.join(last_lines)}")


def read_mutants(words: list[str]) -> list[Mutant]:
    """The bugs of the table, those whose name contains one of the words if there are any."""
    entries = tomllib.loads((ROOT / "tools" / "mutants.toml").read_text())["mutant"]
    mutants = [Mutant(**entry) for entry in entries]
    return [mutant for mutant in mutants if not words or any(word in mutant.name for word in words)]


def fits(mutant: Mutant, package: Path) -> bool:
    """Whether the text that a bug replaces occurs exactly once."""
    path = package / mutant.file
    return path.exists() and path.read_text().count(mutant.old) == 1


def check() -> int:
    """Name the bugs that do not fit the source."""
    misfits = [mutant.name for mutant in read_mutants([]) if not fits(mutant, ROOT / "src" / "sabre")]
    for name in misfits:
        print(f"tools/mutants.toml: the text of {name!r} does not occur exactly once in its file")
    return 2 if misfits else 0


def make_copy(copy: Path) -> None:
    """What the tests need, without compiled files."""
    for folder in ("src/sabre", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "pyproject.toml", copy / "pyproject.toml")


def main(words: list[str]) -> int:
    """1. Copy the source. 2. Judge every bug. 3. See that the tests that failed pass where there is no bug."""
    mutants, began = read_mutants(words), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sabre-mutants-") as directory:
        copy = Path(directory).resolve()
        make_copy(copy)
        verdicts = []
        for mutant in mutants:
            verdicts.append(judge(mutant, copy))
            print(f"{mutant.name:<60} {' by '.join(verdicts[-1])}", flush=True)
        killers = dict.fromkeys(verdict.detail for verdict in verdicts if verdict.kind == "killed")
        status, first = run_tests(copy, list(killers)) if killers else (PASSED, "")
    kinds = [verdict.kind for verdict in verdicts]
    print(f"killed {kinds.count('killed')} / planted {len(mutants)} in {time.monotonic() - began:.0f} s")
    if status != PASSED:
        print(f"not trusted: without any bug pytest ends with {status} ({first})")
        return 2
    return 2 if "BROKEN" in kinds or not mutants else int("SURVIVED" in kinds)


if __name__ == "__main__":
    sys.exit(check() if sys.argv[1:] == ["--check"] else main(sys.argv[1:]))
