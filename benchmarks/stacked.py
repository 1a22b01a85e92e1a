"""Several networks of one recipe stacked in one step: same shapes, other weights, other batches.

    θ [n, …] = stack(θ_1 … θ_n),  ŷ = vmap(forward)(θ, batches),  Σ_k loss_k → n gradients, each clipped by its own norm

Products of n networks are batched products. The networks are plain torch, since Triton kernels are not batched by vmap;
batches are padded to one capacity, so that they stack and a step can be captured.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap
from torch.utils import _pytree as pytree

from ckgconv.backends import plain
from ckgconv.engine.learner import Learner
from ckgconv.engine.samples import Sample, source_of

# Batches that lie ready in memory: a step copies the next one, and assembles none.
READY = 32
WARM_UPS = 3


class StackedStep:
    """A training step of n networks of one recipe, each on a batch of its own.

    Args:
        learners: whose parameters are stacked; they are not trained themselves.
        tables: of each learner, its batches [S, B] of graph numbers on the host.
    """

    def __init__(self, learners: Sequence[Learner], tables: Sequence[Tensor]) -> None:
        self.learner = learners[0]
        for each in learners:
            plain(each.model).train()
        self.parameters, self.buffers = stack_module_state([each.model for each in learners])
        self.model = deepcopy(self.learner.model)
        training, on_gpu = self.learner.recipe, self.learner.fabric.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(
            list(self.parameters.values()),
            lr=training.learning_rate,
            weight_decay=training.weight_decay,
            fused=True,
            capturable=on_gpu,
        )
        self.inputs = self._batches(tables)
        self.held = [each.clone() for each in self.inputs[0]]
        self.losses = torch.zeros(len(learners), device=self.learner.fabric.device)

    def _batches(self, tables: Sequence[Tensor]) -> list[list[Tensor]]:
        """The tensors of the samples of each step, stacked over the networks."""
        source = source_of(self.learner)
        capacity = source.sizes.needed(torch.cat(list(tables)))
        device = self.learner.fabric.device

        def leaves(numbers: Tensor) -> list[object]:
            sample = source.sample(self.learner.data, numbers.to(device), capacity, "train")
            found, self.structure = pytree.tree_flatten((sample.batch, sample.target))
            return found

        steps = [[leaves(numbers) for numbers in rows] for rows in list(zip(*tables, strict=True))[:READY]]
        # What is no tensor, such as a number of graphs, is the same for all batches of a capacity.
        self.leaves = steps[0][0]
        places = [place for place, leaf in enumerate(self.leaves) if isinstance(leaf, Tensor)]
        return [[torch.stack([each[place] for each in step]) for place in places] for step in steps]  # type: ignore[misc]

    def _loss(self, parameters: dict[str, Tensor], buffers: dict[str, Tensor], tensors: list[Tensor]) -> Tensor:
        """Of one network."""
        given = iter(tensors)
        leaves = [next(given) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]
        sample = Sample(*pytree.tree_unflatten(leaves, self.structure))
        with self.learner.fabric.autocast():
            predicted = functional_call(self.model, (parameters, buffers), (sample.batch,))
        return self.learner.loss(predicted, sample.target)

    def step(self) -> None:
        """Train every network on its part of what is held."""
        losses = vmap(self._loss, randomness="different")(self.parameters, self.buffers, self.held)
        gradients = torch.autograd.grad(losses.sum(), list(self.parameters.values()))
        self.losses.copy_(losses.detach())
        for parameter, gradient in zip(
            self.parameters.values(), clipped(gradients, self.learner.recipe.clip_norm), strict=True
        ):
            parameter.grad = gradient
        self.optimizer.step()

    def captured(self) -> Callable[[], object]:
        """The step as a CUDA graph; as it is on a CPU."""
        if self.learner.fabric.device.type == "cpu":
            return self.step
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph.replay

    def run(self, steps: int, step: Callable[[], object]) -> list[float]:
        """That many steps; returns the last losses."""
        for number in range(steps):
            torch._foreach_copy_(self.held, self.inputs[number % len(self.inputs)])
            step()
        return self.losses.tolist()


def clipped(gradients: Sequence[Tensor], most: float) -> list[Tensor]:
    """Gradients [n, …] scaled by min(1, most/(norm + 10⁻⁶)), the norm of each network its own.

    They are contiguous like parameters: torch's fused AdamW pairs the values of both by their places in memory.
    """
    norm = torch.stack([each.reshape(len(each), -1).square().sum(1) for each in gradients]).sum(0).sqrt()
    factor = (most / (norm + 1e-6)).clamp(max=1)
    return [(each * factor.view(-1, *[1] * (each.dim() - 1))).contiguous() for each in gradients]
