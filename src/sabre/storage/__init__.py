"""What a run leaves on the disk: its directory, checkpoints, provenance, and how it is stopped."""

from sabre.storage.cache import Kept, cache_directory, kept_or_made
from sabre.storage.checkpoint import Checkpoint, latest_checkpoint, load_checkpoint, save_checkpoint
from sabre.storage.duration import parse_duration
from sabre.storage.lifeline import die_with_parent
from sabre.storage.provenance import provenance, source_commit
from sabre.storage.run_directory import RunDirectory
from sabre.storage.signals import StopSignal

__all__ = [
    "Checkpoint",
    "Kept",
    "RunDirectory",
    "StopSignal",
    "cache_directory",
    "die_with_parent",
    "kept_or_made",
    "latest_checkpoint",
    "load_checkpoint",
    "parse_duration",
    "provenance",
    "save_checkpoint",
    "source_commit",
]
