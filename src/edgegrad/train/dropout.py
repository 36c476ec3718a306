"""Dropout (Srivastava et al. 2014), inverted: what is kept is scaled up, testing drops nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgegrad.train.device import Device


class Dropout:
    """Random factors for arrays, and seeds for operators that draw their own."""

    def __init__(self, p: float, rng: np.random.Generator, device: Device) -> None:
        self.p, self._rng, self._device = p, rng, device
        # Arrays are filled where they live; a copy from the host would cost more than the layer.
        self._on_device = device.xp.random.default_rng(self.seed())

    def factors(self, *shape: int) -> Any:
        """Draw 0 with probability p, else 1 / (1 - p)."""
        kept = self._on_device.random(shape, dtype=np.float32) >= self.p
        return kept * self._device.dtype.type(1 / (1 - self.p))

    def seed(self) -> int:
        """Draw a seed."""
        return int(self._rng.integers(2**63))
