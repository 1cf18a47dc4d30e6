"""Runs what is missing of an experiment, one after the other or by several workers."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from sabre.errors import SabreError
from sabre.evaluation import StageDisplay, prepare_truth
from sabre.reproduce.execute import execute, is_done
from sabre.reproduce.work import Work
from sabre.storage import die_with_parent

__all__ = ["run_missing"]


def run_missing(root: Path, works: Sequence[Work], workers: int, device: str, quiet: bool) -> dict[str, str]:
    """Do all that is not done; what failed, by name, with the reason. Work of the same name is done once."""
    distinct = {(work.name, work.evaluation): work for work in works}
    missing = [work for work in distinct.values() if not is_done(root, work)]
    if not quiet:
        print(f"{len(distinct)} runs, {len(missing)} of them to do", file=sys.stderr)
    if workers == 1:
        return _in_turn(root, missing, device, quiet)
    return _side_by_side(root, missing, workers, device, quiet)


def _in_turn(root: Path, missing: Sequence[Work], device: str, quiet: bool) -> dict[str, str]:
    failed = {}
    for number, work in enumerate(missing, 1):
        if not quiet:
            print(f"[{number}/{len(missing)}] {work.name}", file=sys.stderr)
        try:
            execute(root, work, device, None if quiet else StageDisplay())
        except SabreError as error:
            failed[work.name] = str(error)
    return failed


def _side_by_side(root: Path, missing: Sequence[Work], workers: int, device: str, quiet: bool) -> dict[str, str]:
    """One process per worker, the cores shared out among them. Runs that share a directory stay in one task.

    True samples and floors come first: all runs on a target need the same ones.
    """
    tasks: dict[str, list[Work]] = {}
    for work in missing:
        tasks.setdefault(work.name, []).append(work)
    failed: dict[str, str] = {}
    context = multiprocessing.get_context("spawn")
    threads = max(1, (os.cpu_count() or 1) // workers)
    begin = (threads, os.getpid())
    with concurrent.futures.ProcessPoolExecutor(workers, context, _begin_worker, begin) as pool, _cancelling(pool):
        truths = {(str(work.target.spec), work.num_samples): work for work in missing}
        for made in [pool.submit(prepare_truth, work.target, work.num_samples) for work in truths.values()]:
            made.result()
        futures = {pool.submit(_task, root, works, device): name for name, works in tasks.items()}
        for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
            name = futures[future]
            reason = future.result() if future.exception() is None else repr(future.exception())
            if reason is not None:
                failed[name] = reason
            if not quiet:
                print(f"[{number}/{len(futures)}] {name}{': failed' if reason else ''}", file=sys.stderr)
    return failed


def _begin_worker(threads: int, parent: int) -> None:
    die_with_parent(parent)
    torch.set_num_threads(threads)


@contextlib.contextmanager
def _cancelling(pool: concurrent.futures.ProcessPoolExecutor) -> Iterator[None]:
    """What interrupts the parent also cancels what has not begun."""
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _task(root: Path, works: Sequence[Work], device: str) -> str | None:
    """What a worker does: the reason of a failure, or nothing."""
    try:
        for work in works:
            execute(root, work, device, None)
    except SabreError as error:
        return str(error)
    except Exception:
        return traceback.format_exc(limit=4)
    return None
