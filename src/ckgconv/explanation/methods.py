"""Contributions of atoms and bonds to a prediction, by four methods.

    gradient               Σ ∂f/∂x (x - x₀) over the rows x of a unit                             does not add up
    occlusion              f - f(without the unit), all its rows at their baseline                does not add up
    integrated_gradients   Σ (x - x₀) ∫₀¹ ∂f/∂x (x₀ + a (x - x₀)) da, by Gauss-Legendre           adds up
    shapley                mean of f(S + unit) - f(S) over orders in which units join, S those before   adds up

"Adds up" means Σ contributions = f(molecule) - f(baseline), up to rounding and, for integrated gradients, up to the
error of the quadrature: the number of points is doubled until that is below `TOLERANCE` of Σ |contributions|, or
`MOST_POINTS` is reached. Orders of Shapley's method are drawn by a seed, each with its reverse: every order adds up,
and the contributions themselves have a sampling error.

Legend: k copies, n atoms, b bonds, U units: atoms, bonds, and what the network reads beside; R rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ckgconv.checks import check_choice
from ckgconv.explanation.inputs import Inputs

Method = Literal["integrated_gradients", "gradient", "occlusion", "shapley"]
POINTS, MOST_POINTS = 16, 256
TOLERANCE = 1e-4
ORDERS = 16


@dataclass(frozen=True)
class Contributions:
    """Of units to f - f(baseline)."""

    units: Tensor  # [U] atoms, bonds, descriptors, own columns
    baseline: float
    prediction: float

    @property
    def residual(self) -> float:
        """What they leave of prediction - baseline."""
        return self.prediction - self.baseline - float(self.units.double().sum())


def contributions(inputs: Inputs, method: Method) -> Contributions:
    """Of atoms and bonds of one molecule."""
    check_choice("method", method, METHODS)
    baseline, prediction = inputs.ends
    return Contributions(_METHODS[method](inputs).cpu(), baseline, prediction)


def gradient(inputs: Inputs) -> Tensor:
    """Gradient × (input - baseline), at the molecule."""
    return _along(inputs, np.ones(1), np.ones(1))


def integrated_gradients(inputs: Inputs) -> Tensor:
    """The mean of `gradient` over the line from the baseline to the molecule."""
    baseline, prediction = inputs.ends
    difference, points = prediction - baseline, POINTS
    while True:
        places, weights = _legendre(points)
        found = _along(inputs, (places + 1) / 2, weights / 2)
        error = abs(float(found.double().sum()) - difference)
        if error <= TOLERANCE * float(found.abs().sum()) or points >= MOST_POINTS:
            return found
        points *= 2


def occlusion(inputs: Inputs) -> Tensor:
    """What is lost where one atom, with its pairs and bonds, or one bond is at its baseline."""
    masks = 1 - torch.eye(inputs.units).to(inputs.parts[0].rows)
    whole = inputs.value_of_units(torch.ones_like(masks[:1]))
    return whole - inputs.value_of_units(masks)


def shapley(inputs: Inputs) -> Tensor:
    """The mean gain of a unit that joins those before it, over sampled orders and their reverses."""
    units, like = inputs.units, inputs.parts[0].rows
    draw = torch.Generator().manual_seed(0)
    orders = [torch.randperm(units, generator=draw) for _ in range(ORDERS // 2)]
    orders += [order.flip(0) for order in orders]
    steps = torch.ones(units + 1, units).tril(-1)  # row s: the first s units have joined
    summed = torch.zeros(units)
    for order in orders:
        masks = torch.empty_like(steps)
        masks[:, order] = steps
        values = inputs.value_of_units(masks.to(like)).cpu()
        summed[order] += values.diff()
    return summed / len(orders)


@cache
def _legendre(points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places in [-1, 1] and weights of Gauss's quadrature."""
    return np.polynomial.legendre.leggauss(points)


def _along(inputs: Inputs, shares: NDArray[np.float64], weights: NDArray[np.float64]) -> Tensor:
    """Σ_a w_a ∂f/∂x (x₀ + a (x - x₀)) · (x - x₀) of each unit [U]."""
    like = inputs.parts[0].rows
    total = torch.zeros(inputs.units, dtype=torch.float64, device=like.device)
    places, weight = (torch.from_numpy(each).to(like) for each in (shares, weights))
    for some, own in zip(places.split(inputs.copies), weight.split(inputs.copies), strict=True):
        rows = [each.requires_grad_() for each in inputs.blended(some)]
        with torch.enable_grad():
            value = (inputs.value(rows) * own).sum()
            gradients = torch.autograd.grad(value, rows, allow_unused=True)
        for part, found in zip(inputs.parts, gradients, strict=True):
            if found is not None:
                values = (found.sum(0) * (part.rows - part.baseline)).double()
                total += part.by_unit(values, inputs.atoms, inputs.units)
    return total


_METHODS: dict[Method, Callable[[Inputs], Tensor]] = {
    "integrated_gradients": integrated_gradients,
    "gradient": gradient,
    "occlusion": occlusion,
    "shapley": shapley,
}
METHODS: tuple[Method, ...] = get_args(Method)
ADDS_UP: frozenset[Method] = frozenset({"integrated_gradients", "shapley"})
