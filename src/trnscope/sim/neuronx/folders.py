"""Where the files of a profile go: ``<output>/<instance-id>_pid_<pid>/<timestamp>/``.

The instance id of a simulated process says so: ``sim-trn2.3xlarge``.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from trnscope.errors import CaptureError


def process_folder(output_dir: str | os.PathLike[str], instance: str) -> Path:
    """The folder of this process; a rank of a job is a process."""
    return Path(output_dir) / f"{instance_id(instance)}_pid_{os.getpid()}"


def instance_id(instance: str) -> str:
    """What stands for the EC2 instance id: the simulated type of instance."""
    return f"sim-{instance}"


def timestamp(now_ns: int | None = None) -> str:
    """``20261130_170501_123``, in local time."""
    now = time.time_ns() if now_ns is None else now_ns
    seconds, rest = divmod(now, 1_000_000_000)
    text = time.strftime("%Y%m%d_%H%M%S", time.localtime(seconds))
    return f"{text}_{rest // 1_000_000:03d}"


def new_session_folder(output_dir: str | os.PathLike[str], instance: str) -> Path:
    """Make the folder for one profile; an older one is never written into."""
    parent = process_folder(output_dir, instance)
    name = timestamp()
    wanted, number = parent / name, 1
    try:
        parent.mkdir(parents=True, exist_ok=True)
        while not _made(wanted):
            number += 1
            wanted = parent / f"{name}_{number}"
    except OSError as error:
        raise CaptureError(
            f"cannot make the profile's folder {error.filename}: {error.strerror}",
            hint="name another one with profile_output_dir",
        ) from error
    return wanted


def _made(folder: Path) -> bool:
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True
