"""The kernel ψ of one layer around one atom of a molecule.

    ψˡ_ij [D], j over all atoms in the support of atom i: with what factor, channel by channel, x_j enters the sum of i

Legend: n atoms, L layers, D channels.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ckgconv.checks import InputError, require
from ckgconv.explanation.drawing import Picture, draw_grid
from ckgconv.explanation.explainer import Explainer
from ckgconv.nn.kernel import Kernel
from ckgconv.nn.kernel_network import KernelNetwork

SHOWN = 3


@dataclass(frozen=True)
class KernelAround:
    """ψ of a layer around an atom."""

    smiles: str
    atom: int
    layer: int  # from 1
    values: Tensor  # [n, D]; NaN for atoms outside the support

    def strongest(self, count: int = SHOWN) -> list[int]:
        """The channels, from 0, that differ most between atoms."""
        spread = self.values.nan_to_num().std(0, correction=0)
        return spread.topk(min(count, len(spread))).indices.tolist()


@torch.no_grad()
def kernel_around(explainer: Explainer, smiles: str, atom: int, layer: int) -> KernelAround:
    """ψ of a layer, counted from 1, around an atom, numbered from 0 as in drawings."""
    inputs = explainer.inputs(smiles, features=[torch.nan] * len(explainer.columns))  # no kernel reads them
    network = inputs.network
    if not (isinstance(network, KernelNetwork) and isinstance(network.kernel, Kernel)):
        raise InputError(f"The run's model is a {type(network).__name__}, which has no kernels ψ: give another run.")
    require(
        0 <= atom < inputs.atoms, f"The atom is number {atom}: {smiles} has atoms 0 to {inputs.atoms - 1}, give one."
    )
    require(1 <= layer <= network.depth, f"The layer is number {layer}: the network has layers 1 to {network.depth}.")
    batch = inputs.batch(1)
    psi = network.kernel.of_layer(inputs.parts[1].rows, batch.pairs, layer - 1)
    own = batch.pairs.receiver == atom
    values = torch.full((inputs.atoms, psi.stored.shape[1]), torch.nan)
    if psi.background is not None:
        values[:] = psi.background[0].cpu()
    values[batch.pairs.sender[own].cpu()] = psi.stored[own].float().cpu()
    return KernelAround(smiles, atom, layer, values)


def draw_kernel(found: KernelAround, channels: list[int] | None = None) -> str:
    """The coefficients of some channels, by default of those that differ most, by colour on the molecule, as SVG."""
    width = found.values.shape[1]
    for channel in channels or []:
        require(0 <= channel < width, f"The channel is number {channel}: give numbers from 0 to {width - 1}.")
    pictures = []
    for channel in channels or found.strongest():
        values = {atom: value for atom, value in enumerate(found.values[:, channel].tolist()) if value == value}
        title = f"layer {found.layer}, channel {channel}, around atom {found.atom} (i)"
        pictures.append(Picture(found.smiles, values, title=title, ring=found.atom))
    return draw_grid(pictures, "coefficient ψ_ij with which atom j enters the sum of atom i", SHOWN, 340, 260)
