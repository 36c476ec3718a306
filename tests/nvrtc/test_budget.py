"""Every kernel that a plan can ask for compiles on every architecture, within its budget."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from edgegrad.backends import cuda

from . import budget, gate, nvrtc

ALWAYS = 80  # compiled in every run; a few minutes for all would be spent on what is known


def test_budget_lists_exactly_the_kernels() -> None:
    _, rows = budget.read()
    assert list(rows) == list(budget.names()), f"rewrite it: {budget.UPDATE}"


@pytest.mark.skipif(nvrtc.missing() is not None, reason=nvrtc.missing() or "")
@pytest.mark.parametrize("arch", nvrtc.ARCHITECTURES, ids="sm_{}".format)
@pytest.mark.parametrize(("source", "kernels"), budget.batches())
def test_kernels_are_within_budget(source: str, kernels: tuple[str, ...], arch: int) -> None:
    if arch not in nvrtc.listed():
        pytest.skip(f"NVRTC {nvrtc.version()} does not compile for sm_{arch}")
    if arch != ALWAYS and budget.unchanged(source):
        pytest.skip("measured from this very source when the budget was written")
    rows, problems = budget.measure(source, kernels, arch)
    assert not problems, "\n".join(problems)
    version, expected = budget.read()
    if nvrtc.version() != version:
        pytest.skip(f"the budget is for NVRTC {version}, installed is {nvrtc.version()}")
    changed = budget.differences(rows, expected)
    assert not changed, "\n".join([*changed, f"if this is meant: {budget.UPDATE}"])


ROW = gate.Row(registers=40, spills=0, shared=0, loads128=7, stores128=1, occupancy=75)


def test_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    table = {"a.cu f<float, 4> sm_80": ROW, "a.cu f<float, 4> sm_90": replace(ROW, registers=32)}
    budget.write(table, tmp_path / "budget.json")
    assert budget.read(tmp_path / "budget.json") == (nvrtc.VERSION, table)
    lines = (tmp_path / "budget.json").read_text().splitlines()
    assert sum("sm_" in line for line in lines) == len(table)


def test_every_difference_is_named() -> None:
    measured = {"same": ROW, "changed": replace(ROW, registers=48, loads128=0), "new": ROW}
    assert budget.differences(measured, {"same": ROW, "changed": ROW}) == [
        "changed: registers 40 -> 48, loads128 7 -> 0",
        "new is not in budget.json",
    ]


@pytest.mark.parametrize("edited", ["sddmm.cu", "common/half.h"])
def test_an_edited_source_or_header_counts_as_changed(
    edited: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "options", cuda.options.__wrapped__)  # not kept between calls
    before = budget.digest("sddmm.cu")
    shutil.copytree(cuda.KERNELS, tmp_path / "kernels")
    monkeypatch.setattr(cuda, "KERNELS", tmp_path / "kernels")
    assert budget.digest("sddmm.cu") == before
    with (tmp_path / "kernels" / edited).open("a") as file:
        file.write("// edited\n")
    assert budget.digest("sddmm.cu") != before
