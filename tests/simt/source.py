"""What is read from the text of a .cu file: its plain kernels, and the names of parameters."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PLAIN_KERNEL = re.compile(r'extern\s+"C"\s+__global__[^;{}]*?\b(\w+)\s*\((?!\s*\d)', re.DOTALL)
_CLOSING = {"(": ")", "<": ">", "[": "]"}


def plain_kernels(code: str) -> list[str]:
    """The ``extern "C"`` kernels, which need no name expression."""
    text = re.sub(r"__launch_bounds__\s*\([^)]*\)", " ", _COMMENT.sub(" ", code))
    return list(dict.fromkeys(_PLAIN_KERNEL.findall(text)))


def parameter_names(code: str, kernel: str) -> list[str]:
    """The names of a kernel's parameters, for messages; empty if the text is too unusual."""
    base = kernel.split("<")[0].split("::")[-1]
    text = _COMMENT.sub(" ", code)
    match = re.search(rf"__global__[^;{{}}]*?\b{base}\s*\(", text, re.DOTALL)
    if not match:
        return []
    names = (re.search(r"(\w+)\s*$", part) for part in _split(text[match.end() :]))
    return [name[1] if name else "" for name in names]


def _split(text: str) -> list[str]:
    """The comma-separated parts up to the parenthesis that closes the list."""
    parts, start, closing = [], 0, [")"]
    for i, char in enumerate(text):
        if char in _CLOSING:
            closing.append(_CLOSING[char])
        elif char == closing[-1]:
            closing.pop()
        if not closing or (char == "," and len(closing) == 1):
            parts.append(text[start:i])
            start = i + 1
        if not closing:
            break
    return parts
