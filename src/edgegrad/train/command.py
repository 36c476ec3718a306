"""What every training command does, from its arguments to the report."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from edgegrad.train import plot
from edgegrad.train.device import Device
from edgegrad.train.fit import Model, Run, Settings, fit
from edgegrad.train.progress import progress
from edgegrad.train.report import Report


def train(
    args: Namespace,
    settings: Settings,
    get_data: Callable[[], Any],
    make_model: Callable[[Any, Any, Device], Model],
) -> int:
    """Train for every seed, then print and draw what came of it."""
    if args.plot:
        plot.check_target(args.plot)
    device, data = Device(args.device, args.dtype), get_data()
    model, runs = make_model(data, settings, device), []
    with progress(args.seeds * settings.epochs, f"{settings.title} on {data.name}") as advance:

        def on_epoch(run: Run) -> None:
            advance(f"seed {run.seed}, test accuracy {run.accuracy['test'][-1]:.3f}", 1)

        for seed in range(args.seed, args.seed + args.seeds):
            runs.append(fit(model, data, settings, seed, on_epoch))
            # Epochs that an early stop has spared.
            advance(f"seed {seed} done", settings.epochs - runs[-1].epochs)
    n_params = sum(p.size for p in model.params.values())
    report = Report(data, settings, args.device, args.dtype, n_params, runs)
    if args.plot:
        plot.draw(report, args.plot)
    print(json.dumps(report.as_dict(), indent=2) if args.json else report.text())
    return 0
