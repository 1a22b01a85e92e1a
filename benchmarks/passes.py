"""Times of the two fused passes alone, replayed as CUDA graphs, at the shapes of the paper's data sets.

python benchmarks/passes.py --shape zinc --precision bf16
"""

import argparse
import json

import torch

from ckgconv.backends.cuda.node_pass import launch as node_pass
from ckgconv.backends.cuda.node_pass.options import Block, Lists
from ckgconv.backends.cuda.node_pass.options import Dropout as NodeDropout
from ckgconv.backends.cuda.pairs_pass import launch as pairs_pass
from ckgconv.backends.cuda.pairs_pass.options import Dropout, rows_of, settings_of
from ckgconv.backends.cuda.streams import IN_ORDER
from ckgconv.nn import WeightedBatchNorm
from ckgconv.ops.kernel_mlp import Stage

# Graphs of a batch, nodes of each, layers, width: the means of the training splits.
SHAPES = {
    "zinc": (32, 23, 10, 64),
    "pattern": (16, 118, 10, 64),
    "cluster": (16, 117, 16, 54),
    "mnist": (16, 71, 4, 48),
    "cifar10": (16, 118, 3, 56),
    "peptides": (16, 172, 4, 96),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=[*SHAPES, "all"], default="zinc")
    parser.add_argument("--precision", choices=["32", "tf32", "bf16"], default="bf16")
    options = parser.parse_args()
    torch.set_float32_matmul_precision("highest" if options.precision == "32" else "high")
    for shape in SHAPES if options.shape == "all" else [options.shape]:
        with torch.autocast("cuda", torch.bfloat16, enabled=options.precision == "bf16"):
            print(json.dumps({"shape": shape, "precision": options.precision, **measure(*SHAPES[shape])}))


def measure(graphs: int, size: int, layers: int, width: int) -> dict[str, float]:
    """Milliseconds of each pass, and the bandwidth of the pairs pass by its least traffic."""
    rows, nodes = graphs * size**2, graphs * size
    x = torch.randn(rows, width, device="cuda", requires_grad=True)
    stages = [
        Stage(*drawn((layers, width), (layers, width), (layers, width, width), (layers, width))) for _ in range(5)
    ]
    seed = torch.zeros(1, dtype=torch.int64, device="cuda")
    results: dict[str, float] = {}

    norm = WeightedBatchNorm(width)
    settings = settings_of(x, [statistics(layers, width) for _ in stages], norm, IN_ORDER)

    def pairs_forward() -> torch.Tensor:
        return pairs_pass.kernel_mlp(x, stages, settings, rows_of(x, None, None), Dropout(seed, 0.1, 0.5, rows))[0]

    psi = pairs_forward().detach()
    pulled = torch.randn_like(psi)
    inputs = [x, *(field for stage in stages for field in stage)]
    results["pairs_forward_ms"] = replayed(pairs_forward)
    both = replayed(lambda: torch.autograd.grad(pairs_forward(), inputs, pulled))
    results["pairs_backward_ms"] = both - results["pairs_forward_ms"]
    vectors, square = (width,), (width, width)
    shapes = (vectors, vectors, square, vectors, vectors, vectors)
    shapes += ((2 * width, width), (2 * width,), (width, 2 * width), vectors, vectors, vectors)
    blocks = [Block(*drawn(*shapes)) for _ in range(layers)]
    lists = complete(graphs, size)
    h = torch.randn(nodes, width, device="cuda", requires_grad=True)
    kernel = psi.requires_grad_()
    node_settings = node_pass.settings_of(h, [statistics(width) for _ in range(2 * layers)], norm, IN_ORDER)

    def node_forward() -> torch.Tensor:
        return node_pass.node_pass(h, kernel, lists, blocks, node_settings, None, NodeDropout(seed, 0.0))[0]

    back = torch.randn(nodes, width, device="cuda")
    inputs = [h, kernel, *(field for block in blocks for field in block)]
    results["nodes_forward_ms"] = replayed(node_forward)
    both = replayed(lambda: torch.autograd.grad(node_forward(), inputs, back))
    results["nodes_backward_ms"] = both - results["nodes_forward_ms"]
    # Forward five outputs, four inputs, one residual; backward 23 (see `pair_traffic` of `nn.ckgcn`).
    results["pairs_gb"] = 33 * psi.numel() * psi.element_size() / 1e9
    total = results["pairs_forward_ms"] + results["pairs_backward_ms"]
    results["pairs_gb_s"] = results["pairs_gb"] / total * 1e3
    return {name: round(value, 4) for name, value in results.items()}


def drawn(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [(torch.randn(shape, device="cuda") / shape[-1] ** 0.5).requires_grad_() for shape in shapes]


def statistics(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(shape, device="cuda"), torch.ones(shape, device="cuda")


def complete(graphs: int, size: int) -> Lists:
    """Global support of graphs of one size."""
    row = torch.arange(graphs * size**2, device="cuda")
    graph, cell = row // size**2, row % size**2
    i, j = cell // size, cell % size
    pointer = torch.arange(graphs * size + 1, device="cuda") * size
    sizes = torch.full((graphs * size,), float(size), device="cuda")
    return Lists(pointer, graph * size + j, pointer, graph * size**2 + j * size + i, graph * size + j, sizes, sizes)


def replayed(function: object, repeats: int = 20) -> float:
    """Median milliseconds of a call, captured and replayed."""
    assert callable(function)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        function()
        function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    times = []
    for _ in range(repeats):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop))
    return sorted(times)[repeats // 2]


if __name__ == "__main__":
    main()
