"""Compiled files by content, shared by all processes and kept between test runs."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


@functools.cache
def folder() -> Path:
    """Where compiled files are kept; ``EDGEGRAD_SIMT_CACHE`` overrides it."""
    default = Path(tempfile.gettempdir()) / f"edgegrad-simt-{os.getuid()}"
    path = Path(os.environ.get("EDGEGRAD_SIMT_CACHE", default))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.getuid():  # code from it is executed
        raise PermissionError(f"{path} belongs to another user; set EDGEGRAD_SIMT_CACHE")
    return path


def key(*parts: object) -> str:
    """Hash whatever decides the content of a file into a part of its name."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:20]


def cached(name: str, build: Callable[[Path], Path]) -> Path:
    """Return the file or folder `name`; if it is missing, `build` makes it in a scratch folder.

    The result is renamed into place, so that other processes see all of it or nothing.
    """
    final = folder() / name
    if not final.exists():
        with tempfile.TemporaryDirectory(prefix="build-", dir=folder()) as scratch:
            made = build(Path(scratch))
            try:
                os.replace(made, final)
            except OSError:  # a folder that another process has put there first
                if not final.exists():
                    raise
    return final


def included_files(code: str, include_dirs: Iterable[Path]) -> list[Path]:
    """Every header that `code` includes, directly or not, and that lies in `include_dirs`.

    Conditions around an #include are not looked at: one header too many only compiles again.
    """
    dirs = list(include_dirs)
    found: dict[Path, None] = {}
    pending = [(code, None)]
    while pending:
        text, here = pending.pop()
        for name in _INCLUDE.findall(text):
            candidates = [d / name for d in ([here] if here else []) + dirs]
            path = next((c.resolve() for c in candidates if c.is_file()), None)
            if path and path not in found:
                found[path] = None
                pending.append((path.read_text(), path.parent))
    return sorted(found)
