"""The directory of one run: its configuration, metrics, checkpoints, results and report."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from sabre.errors import InvalidArgumentError, RunDirectoryError
from sabre.storage.files import strict_json, sync, write_atomic

__all__ = ["RunDirectory"]


class RunDirectory:
    """Paths and files of a run. Nothing is created before something is written."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.config_path = self.path / "config.yaml"
        self.metrics_path = self.path / "metrics.jsonl"
        self.checkpoints = self.path / "checkpoints"
        self.results_path = self.path / "results.json"
        self.report_path = self.path / "report.html"

    def exists(self) -> bool:
        """Whether a run has been started here."""
        return self.config_path.is_file()

    def is_foreign(self) -> bool:
        """Whether files that a run would replace are here, and no run of sabre has written them."""
        if self.exists():
            try:
                return self.read_config().keys() != {"target", "options"}
            except RunDirectoryError:
                return True
        named = (self.metrics_path, self.checkpoints, self.results_path, self.report_path)
        return any(path.exists() for path in named)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run for this process. The system lets go of it when the process ends, however it ends."""
        self._create()
        try:
            handle = (self.path / ".lock").open("a+")
        except OSError as error:
            raise self._refused("cannot be locked", error) from error
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                handle.seek(0)
                raise RunDirectoryError(
                    f"run directory {self.path} is in use by process {handle.read().strip() or 'unknown'}; wait for it "
                    "or choose another --run-dir"
                ) from None
            except OSError as error:
                raise self._refused("cannot be locked", error) from error
            handle.truncate(0)
            handle.write(f"{os.getpid()} ({socket.gethostname()})")
            handle.flush()
            yield

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write `config.yaml`: plain values, in the order given; tuples become lists."""
        try:
            text = yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True)
        except yaml.YAMLError as error:
            raise InvalidArgumentError(f"config cannot be written as plain YAML: {error}") from error
        self._write(self.config_path, text)

    def read_config(self) -> dict[str, Any]:
        """Read `config.yaml`."""
        try:
            config = yaml.safe_load(self._read(self.config_path))
        except yaml.YAMLError as error:
            raise RunDirectoryError(
                f"{self.config_path} is not YAML ({error}); restore it or start a new run"
            ) from error
        if not isinstance(config, dict):
            raise RunDirectoryError(f"{self.config_path} holds no options; restore it or start a new run")
        return config

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Append one record to `metrics.jsonl`, after removing what a killed process may have left of its last one."""
        self._create()
        try:
            with self.metrics_path.open("ab+") as handle:
                if handle.tell():
                    handle.seek(-1, os.SEEK_END)
                    if handle.read(1) != b"\n":
                        handle.truncate(self.metrics_path.read_bytes().rfind(b"\n") + 1)
                handle.write((strict_json(dict(record)) + "\n").encode())
        except OSError as error:
            raise self._refused("cannot be written to", error) from error

    def sync_metrics(self) -> None:
        """Put on the disk for good what was appended, before a checkpoint that counts on it is."""
        if self.metrics_path.exists():
            try:
                sync(self.metrics_path)
                sync(self.path)
            except OSError as error:
                raise self._refused(f"cannot hold {self.metrics_path.name}", error) from error

    def read_metrics(self) -> list[dict[str, Any]]:
        """All complete records, in order; a torn last line is not one."""
        if not self.metrics_path.exists():
            return []
        lines = self._read(self.metrics_path).split("\n")[:-1]
        records = []
        for number, line in enumerate(lines, 1):
            try:
                records.append(json.loads(line))
            except ValueError as error:
                raise RunDirectoryError(
                    f"{self.metrics_path}, line {number} is not JSON ({error}); remove that line"
                ) from error
        return records

    def truncate_metrics(self, step: int) -> None:
        """Drop the records of steps after `step`, which a run that resumes from there will write again."""
        kept = [strict_json(record) + "\n" for record in self.read_metrics() if record.get("step", 0) <= step]
        self._write(self.metrics_path, "".join(kept))

    def write_results(self, results: Mapping[str, Any]) -> None:
        """Write `results.json`."""
        self._write(self.results_path, strict_json(dict(results), indent=2) + "\n")

    def read_results(self) -> dict[str, Any]:
        """Read `results.json`."""
        try:
            return json.loads(self._read(self.results_path))
        except ValueError as error:
            raise RunDirectoryError(f"{self.results_path} is not JSON ({error}); evaluate the run again") from error

    def write_report(self, html: str) -> None:
        """Write `report.html`."""
        self._write(self.report_path, html)

    def _create(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._refused("cannot be created", error) from error

    def _write(self, path: Path, text: str) -> None:
        self._create()
        try:
            write_atomic(path, text.encode())
        except OSError as error:
            raise self._refused(f"cannot hold {path.name}", error) from error

    def _read(self, path: Path) -> str:
        try:
            return path.read_text("utf-8")
        except FileNotFoundError:
            raise RunDirectoryError(
                f"{self.path} has no {path.name}, so no run has got that far here; check --run-dir"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise RunDirectoryError(f"{path} cannot be read: {error}; check its permissions or restore it") from error

    def _refused(self, what: str, error: OSError) -> RunDirectoryError:
        return RunDirectoryError(
            f"run directory {self.path} {what}: {error.strerror or error}; free space, fix its permissions or choose "
            "another --run-dir"
        )
