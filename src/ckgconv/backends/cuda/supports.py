"""What the fused passes can compute: one function per question, which returns None or a sentence that says why not.

Reasons of the machine or of the recipe hold for all batches (`why_not_fused`); others depend on the batch, which the
plain module then computes instead.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ckgconv.backends.stages import has_batch_norms
from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.block import CKGConvBlock
from ckgconv.nn.channels import Depthwise
from ckgconv.nn.ckgcn import CKGCN
from ckgconv.nn.coordinates import NormalisedEncoder
from ckgconv.nn.dynamic import ParallelConvolution
from ckgconv.nn.grit import GRIT, GRITBlock
from ckgconv.nn.head import PyramidHead
from ckgconv.nn.hybrid import Hybrid
from ckgconv.nn.kernel import Kernel
from ckgconv.nn.message_passing import MessagePassing
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.nn.stem import Mix, PairStem
from ckgconv.ops import dispatch
from ckgconv.ops.all_reduce import several_processes
from ckgconv.ops.dispatch import WIDEST, fits

Reason = str | None
# Minesweeper, 10,000 nodes, `ckgconv study nodes --data minesweeper` at 63d96dd: captured on an H200 the network
# reached a validation AUROC of 0.88, on a CPU 0.95. In Triton's interpreter the pass equals plain torch at that size,
# so the cause is not known.
MOST_NODES = 4096
MOST_EDGES = 2**14  # of GatedGCN, whose programs add up a part of every 32 edges
LARGEST_ATTENDED = 512  # nodes of a graph whose attention is one program for each head
WIDEST_ATTENTION = 64
HIGHEST_SCORE = 40.0  # e⁴⁰ ten thousand times over is still a float32


def why_not_fused(model: nn.Module, device: torch.device | str) -> Reason:
    """None where every pass of the model is fused on the device, else the first reason why one is not."""
    device = torch.device(device)
    machine = machine_reason(device)
    if machine is not None:
        return machine
    if isinstance(model, CKGCN) and not type(model).__module__.startswith("ckgconv."):
        return f"{type(model).__name__} is a class of your own: its parts are fused, not the order of their launches."
    if isinstance(model, GRIT):
        return _attention_reason_of(model)
    if not isinstance(model, CKGCN):
        return f"Not every part of {type(model).__name__} has a fused pass: the others run as they are written."
    if model.dtype != torch.float32:
        return _dtype_reason(next(model.parameters()))
    like = torch.empty(0, device=device)
    if not fits(like, 1, model.recipe.width):
        return f"The network has width {model.recipe.width}, and tiles of that width do not fit into shared memory."
    if not isinstance(model.kernel, Kernel):
        return "The kernels are modules of the user's own: they run as they are written."
    if model.kernel.constraint == "softplus":
        return "The kernels are constrained by softplus: their values pass through plain torch."
    return _norm_reason(model) or _stem_reason_of(model, like) or _head_reason(model)


def machine_reason(device: torch.device) -> Reason:
    """Why no Triton kernel runs on a device."""
    if dispatch.runs_triton(device):
        return None
    if device.type != "cuda":
        return f"The device is {device.type}: fused passes are written for CUDA GPUs."
    if not torch.cuda.is_available():
        return "Torch finds no GPU on this machine: fused passes need one."
    if not dispatch.has_triton():
        return "Triton is not installed: pip install triton."
    return "The GPU has a compute capability below 8.0: fused passes need its tf32 matrix units."


def stem_reason(module: nn.Module, mix: Mix, x: Tensor, rows: int) -> Reason:
    """Why a stem over x with that many rows is not fused."""
    if not module.training:
        return "The stem is in evaluation mode, where running statistics make it one affine map."
    if mix.combine != "sum" or not isinstance(mix.projection, nn.Linear):
        return "The stem does not add a projected encoding to the attributes."
    if mix.projection.weight.dtype != torch.float32:
        return _dtype_reason(mix.projection.weight)
    if x.requires_grad:
        return "Edge weights or encodings have a gradient, which a fused stem does not compute."
    return _tensor_reason(x, rows, max(mix.width, mix.channels))


def kernel_reason(kernel: Kernel, pair_features: Tensor) -> Reason:
    """Why the kernels ψ are not evaluated by the pairs pass."""
    if kernel.linear.weight.dtype != torch.float32:
        return _dtype_reason(kernel.linear.weight)
    if not has_batch_norms(kernel):
        return "The kernel has other norms than batch norms."
    if torch.is_grad_enabled() and not kernel.training:
        return "Gradients are asked for in evaluation mode."
    return _tensor_reason(pair_features, pair_features.shape[0], max(kernel.linear.weight.shape[-2:]))


def blocks_reason(blocks: Sequence[CKGConvBlock], h: Tensor, pairs: Pairs, degree: Tensor) -> Reason:
    """Why the blocks do not run as the node pass."""
    weight = blocks[0].ffn_in.weight
    if weight.dtype != torch.float32:
        return _dtype_reason(weight)
    if not all(isinstance(block.convolution.channels, Depthwise) for block in blocks):
        return "A convolution is grouped or has heads."
    if not all(isinstance(block.convolution_norm, WeightedBatchNorm) for block in blocks):
        return "A block has other norms than batch norms."
    if degree.requires_grad:
        return "Edge weights have a gradient, which the node pass does not compute."
    if pairs.has_zero_rows:
        return "The support is the sparse global one, whose zero rows the node pass does not read."
    if blocks[0].training and h.shape[0] > MOST_NODES:
        return f"{h.shape[0]:,} nodes are trained at once, and the node pass is known to be right up to {MOST_NODES:,}."
    if torch.is_grad_enabled() and not blocks[0].training:
        return "Gradients are asked for in evaluation mode."
    return _tensor_reason(h, pairs.num_pairs, h.shape[1])


def attention_reason(model: GRIT, pairs: Pairs, degree: Tensor) -> Reason:
    """Why the blocks of a GRIT do not run by the attention pass."""
    if model.dtype != torch.float32:
        return _dtype_reason(next(model.parameters()))
    if torch.is_grad_enabled() and not model.training:
        return "Gradients are asked for in evaluation mode."
    if pairs.filled is None and pairs.row_weight is not None:
        return "Pairs count with weights of their own."
    return _attention_reason_of(model) or _tensor_reason(degree, pairs.num_pairs, model.recipe.width)


def tail_reason(blocks: Sequence[CKGConvBlock], h: Tensor, batch: GraphBatch) -> Reason:
    """Why what follows the sums of blocks does not run by launches of the node pass."""
    nodes, width = h.shape
    if not all(block.training for block in blocks) or batch.degree.requires_grad:
        return "The blocks are in evaluation mode, or edge weights have a gradient."
    if not all(isinstance(block.convolution_norm, WeightedBatchNorm) for block in blocks):
        return "A block has other norms than batch norms."
    wider = any(block.convolution.projection.in_features != width for block in blocks)
    if wider and not all(isinstance(block.convolution, ParallelConvolution) for block in blocks):
        return "The sums have another width than the network."
    if wider and any(block.dropout or block.drop_path.drops for block in blocks):
        return "Values or blocks are dropped after the projection of sums that are wider than the network."
    widest = max(block.convolution.projection.in_features - width for block in blocks) if wider else 0
    if widest > WIDEST:
        return f"The attention beside the convolution has {widest} channels, and no tile is wider than {WIDEST}."
    return _nodes_reason(batch, nodes) or _tensor_reason(h, nodes, width)


def grit_blocks_reason(blocks: Sequence[GRITBlock], h: Tensor, batch: GraphBatch) -> Reason:
    """Why the blocks of GRIT do not run as one pass."""
    nodes, width = h.shape
    if not all(block.training for block in blocks) or batch.degree.requires_grad:
        return "The blocks are in evaluation mode, or edge weights have a gradient."
    if any(block.dropout or block.drop_path.drops for block in blocks):
        return "Values or blocks are dropped."
    return _nodes_reason(batch, nodes) or _tensor_reason(h, nodes, width)


def message_blocks_reason(model: MessagePassing, batch: GraphBatch) -> Reason:
    """Why the blocks of message passing do not run as one pass."""
    recipe, nodes = model.recipe, batch.degree.shape[0]
    if not model.training or not all(block.training for block in model.blocks):
        return "The blocks are in evaluation mode."
    if recipe.layer not in ("gine", "gatedgcn") or not recipe.ffn or not recipe.residual:
        return "The blocks are not those of GINE or GatedGCN with residual sums and feed-forward networks."
    if recipe.attention_heads and (recipe.layer != "gine" or not attends_by_graphs(recipe.support, batch)):
        return "Attention does not run next to GINE over all pairs of small graphs."
    if recipe.layer == "gatedgcn" and batch.edge_row.shape[0] > MOST_EDGES:
        return f"{batch.edge_row.shape[0]:,} edges are trained at once, and the block pass adds up to {MOST_EDGES:,}."
    if recipe.norm != "batch" or recipe.activation != "relu":
        return "The blocks have other norms than batch norms, or another activation than ReLU."
    rows = max(nodes, batch.edge_row.shape[0])
    return _nodes_reason(batch, nodes) or _tensor_reason(batch.degree, rows, recipe.width)


def attends_by_graphs(support: str | int, batch: GraphBatch) -> bool:
    """Whether all pairs of each graph are stored, and graphs are so small that one program attends over all of one."""
    return support == "global" and batch.pairs.num_pairs <= LARGEST_ATTENDED * batch.degree.shape[0]


def reads_fixed_walks(stem: PairStem) -> bool:
    """Whether the input of the first norm of a pair stem depends on no parameter."""
    return isinstance(stem.encoder, NormalisedEncoder) and stem.encoder.injection is None


def sums_in_fixed_order(model: nn.Module) -> bool:
    """Whether all sums over nodes and pairs run in fused passes, which sum in a fixed order.

    Runs then repeat bit for bit without torch's deterministic algorithms.
    """
    if isinstance(model, GRIT):
        return _attention_reason_of(model) is None
    if isinstance(model, MessagePassing):
        return model.recipe.layer in ("gine", "gcn_edges", "gatedgcn")
    if isinstance(model, Hybrid):
        return model.recipe.kernel.constraint == "none" and model.recipe.support != "sparse_global"
    if not isinstance(model, CKGCN) or not isinstance(model.kernel, Kernel):
        return False
    norms = [model.kernel.norm, *(block.ffn_norm for block in model.blocks)]
    constraints = ("none",) if model.encoding.support == "sparse_global" else ("none", "softmax")
    narrow = fits(model.node_stem.norm.scale, 1, model.recipe.width)
    return narrow and model.kernel.constraint in constraints and all(isinstance(n, WeightedBatchNorm) for n in norms)


def _attention_reason_of(model: GRIT) -> Reason:
    if model.recipe.width > WIDEST_ATTENTION:
        return (
            f"The network has width {model.recipe.width}: gradients of three matrices wider than {WIDEST_ATTENTION} do "
            f"not fit into the registers of the attention pass."
        )
    if model.recipe.clamp > HIGHEST_SCORE:
        return f"Scores are clamped to ±{model.recipe.clamp}: without a shift their exponentials are not finite."
    return None


def _norm_reason(model: CKGCN) -> Reason:
    assert isinstance(model.kernel, Kernel)
    norms = [model.kernel.norm, *(block.convolution_norm for block in model.blocks)]
    if not all(isinstance(norm, WeightedBatchNorm) for norm in norms):
        return "A norm is not a batch norm: fused passes compute no other."
    if model.encoding.support == "sparse_global":
        return "The support is the sparse global one: the pairs pass is fused, the blocks run block after block."
    return None


def _head_reason(model: CKGCN) -> Reason:
    if not isinstance(model.head, PyramidHead):
        return f"The head is a {type(model.head).__name__}: it runs in plain torch, everything before it is fused."
    return None


def _stem_reason_of(model: CKGCN, like: Tensor) -> Reason:
    mix = model.pair_stem.mix
    if mix.combine != "sum" or not isinstance(mix.projection, nn.Linear):
        return "The pair stem does not add a projected encoding to the attributes: it runs in plain torch."
    if not reads_fixed_walks(model.pair_stem):
        return "The coordinates are not fixed walk probabilities, and the fused stem sends no gradient to coordinates."
    if not fits(like, 1, mix.channels):
        return f"Coordinates and their sinusoids have {mix.channels} channels, and the fused stem has no tiles so wide."
    return None


def _nodes_reason(batch: GraphBatch, nodes: int) -> Reason:
    """Why no pass over the nodes trains a batch."""
    if batch.node_weight is not None and batch.node_filled is None:
        return "Some nodes send only, and count in no statistics."
    if not 0 < nodes <= MOST_NODES:
        return f"{nodes:,} nodes are trained at once, and the passes are known to be right up to {MOST_NODES:,}."
    return None


def _dtype_reason(parameter: Tensor) -> str:
    return f"The parameters are {parameter.dtype}: fused passes need float32, with autocast for bfloat16."


def _tensor_reason(x: Tensor, rows: int, channels: int) -> Reason:
    """Why Triton kernels cannot run on x with that many rows and channels."""
    if several_processes():
        return "Several processes share the statistics of a batch."
    if not dispatch.uses_triton(x):
        return "The tensor is not float32 on a GPU that runs Triton."
    if not fits(x, rows, channels):
        return f"{rows:,} rows of {channels} channels do not fit 32-bit offsets, or their tiles shared memory."
    return None
