"""The published model's recorded numbers, and their names in our modules."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ckgconv import CKGCN, recipe
from ckgconv.recipe import AttributeRecipe, CKGCNRecipe, KernelRecipe

FOLDER = Path(__file__).parent / "data" / "golden"
LAYERS = 2

# Module numbers inside a published kernel → our names.
KERNEL = {
    0: "blocks.0.norm_in",
    2: "blocks.0.linear_in",
    3: "blocks.0.norm_out",
    5: "blocks.0.linear_out",
    8: "blocks.1.norm_in",
    10: "blocks.1.linear_in",
    11: "blocks.1.norm_out",
    13: "blocks.1.linear_out",
    16: "norm",
    17: "linear",
}
NORM_FIELDS = {
    "weight": "scale",
    "bias": "shift",
    "running_mean": "running_mean",
    "running_var": "running_variance",
}


def recorded(file: str) -> dict[str, np.ndarray]:
    with np.load(FOLDER / file, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def param_counts() -> dict:
    return json.loads((FOLDER / "param_counts.json").read_text())


class Golden:
    """One recorded model: its recipe, its inputs, and arrays under our parameter names."""

    def __init__(self, file: str, model: str, support: str | int = "global", encoding: str = "rrwp") -> None:
        everything = recorded(file)
        prefix = f"{model}/" if any(key.startswith(f"{model}/") for key in everything) else ""
        self.arrays = {key[len(prefix) :]: value for key, value in everything.items() if key.startswith(prefix)}
        self.inputs = {key[3:]: value for key, value in everything.items() if key.startswith("in/")}
        self.recipe = small_recipe("pattern" if "pattern" in file else "zinc", support, encoding)

    def data(self, dtype: torch.dtype) -> Data:
        inputs = {key: torch.from_numpy(value) for key, value in self.inputs.items()}
        offset = inputs["node_ptr"][:-1].repeat_interleave(inputs["edge_ptr"].diff())
        edges = torch.stack([inputs["edge_sender"], inputs["edge_receiver"]]) + offset
        batch = torch.arange(len(inputs["num_nodes"])).repeat_interleave(inputs["num_nodes"])
        if "atom" in inputs:
            return Data(
                x=inputs["atom"].long().view(-1, 1),
                edge_index=edges,
                edge_attr=inputs["bond"].long().view(-1, 1),
                batch=batch,
                y=inputs["y"].to(dtype),
            )
        return Data(x=inputs["node_feat"].to(dtype), edge_index=edges, batch=batch, y=inputs["label"])

    def model(self, dtype: torch.dtype) -> CKGCN:
        model = CKGCN.from_recipe(self.recipe).to(dtype)
        state = {**self.named("param/"), **self.named("buffer/")}
        missing = set(model.state_dict()) - set(state)
        assert missing <= {"pair_stem.encoder.unreachable"}, missing
        model.load_state_dict({**model.state_dict(), **{key: value.to(dtype) for key, value in state.items()}})
        return model

    def named(self, prefix: str) -> dict[str, Tensor]:
        """Recorded arrays of one prefix under our names, layers stacked where ours are."""
        reference = {
            key[len(prefix) :]: torch.from_numpy(value) for key, value in self.arrays.items() if key.startswith(prefix)
        }
        names = {**self._outer_names(), **self._block_names()}
        ours = {mine: reference[theirs] for theirs, mine in names.items() if theirs in reference}
        ours |= self._kernels(reference)
        ours |= self._special(reference)
        model = CKGCN.from_recipe(self.recipe)
        shapes = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        return {name: value.reshape(shapes[name].shape) for name, value in ours.items()}

    def _outer_names(self) -> dict[str, str]:
        names = {
            "feat_enc.node_encoder.encoder.weight": "node_encoder.tables.0.weight",
            "feat_enc.edge_encoder.encoder.weight": "edge_encoder.tables.0.weight",
            "stem.node_stem.0.pe_fc.weight": "node_stem.mix.projection.weight",
            "stem.edge_stem.0.affine.gamma": "pair_stem.encoder.norm.scale",
            "stem.edge_stem.0.affine.beta": "pair_stem.encoder.norm.shift",
            "stem.edge_stem.0.pe_fc.weight": "pair_stem.mix.projection.weight",
            "stem.edge_stem.0.raw_norm.running_mean": "pair_stem.encoder.norm.running_mean",
            "stem.edge_stem.0.raw_norm.running_var": "pair_stem.encoder.norm.running_variance",
        }
        for theirs, mine in NORM_FIELDS.items():
            names[f"stem.node_stem.0.raw_norm.{theirs}"] = f"node_stem.encoding_norm.{mine}"
            names[f"stem.node_stem.0.post_norm.{theirs}"] = f"node_stem.norm.{mine}"
            names[f"stem.edge_stem.0.post_norm.{theirs}"] = f"pair_stem.norm.{mine}"
        for field in ("weight", "bias"):
            for level in range(3):
                names[f"post_mp.FC_layers.{level}.{field}"] = f"head.linears.{level}.{field}"
            for level in range(2):
                hidden = f"post_mp.layer_post_mp.model.0.Layer_{level}.layer.model.{field}"
                names[hidden] = f"head.linears.{level}.{field}"
            names[f"post_mp.layer_post_mp.model.1.model.{field}"] = f"head.linears.2.{field}"
        if self.recipe.encoding != "rrwp":  # recorded there, but unused
            names = {theirs: mine for theirs, mine in names.items() if not mine.startswith("pair_stem.encoder")}
            del names["stem.edge_stem.0.pe_fc.weight"]
        if self.recipe.node.kind == "linear":
            names["feat_enc.node_encoder.encoder.weight"] = "node_encoder.linear.weight"
            names["feat_enc.node_encoder.encoder.bias"] = "node_encoder.linear.bias"
            names["feat_enc.edge_encoder.encoder.weight"] = "edge_encoder.vector"
        return names

    def _block_names(self) -> dict[str, str]:
        names = {}
        for layer in range(LAYERS):
            theirs, mine = f"layers.{layer}", f"blocks.{layer}"
            for field in ("weight", "bias"):
                names[f"{theirs}.O_h.{field}"] = f"{mine}.convolution.projection.{field}"
                names[f"{theirs}.FFN_h_layer1.{field}"] = f"{mine}.ffn_in.{field}"
                names[f"{theirs}.FFN_h_layer2.{field}"] = f"{mine}.ffn_out.{field}"
            for field, ours in NORM_FIELDS.items():
                names[f"{theirs}.norm1_h.{field}"] = f"{mine}.convolution_norm.{ours}"
                names[f"{theirs}.norm2_h.{field}"] = f"{mine}.ffn_norm.{ours}"
        return names

    def _kernels(self, reference: dict[str, Tensor]) -> dict[str, Tensor]:
        ours = {}
        for number, mine in KERNEL.items():
            fields = NORM_FIELDS if "norm" in mine else {"weight": "weight", "bias": "bias"}
            for theirs, field in fields.items():
                keys = [f"layers.{layer}.conv.blocks.module_{number}.{theirs}" for layer in range(LAYERS)]
                if keys[0] in reference:
                    ours[f"kernel.{mine}.{field}"] = torch.stack([reference[key] for key in keys])
        return ours

    def _special(self, reference: dict[str, Tensor]) -> dict[str, Tensor]:
        """Arrays that are laid out differently."""
        ours = {}
        stem = "stem.edge_stem.0."
        for layer in range(LAYERS):
            if (key := f"layers.{layer}.conv.deg_coef") in reference:
                ours[f"blocks.{layer}.convolution.degree_scaler.theta1"] = reference[key][0, :, 0]
                ours[f"blocks.{layer}.convolution.degree_scaler.theta2"] = reference[key][0, :, 1]
        if (key := f"{stem}pe_emb.weight") in reference:  # ours has one row more, for unreachable pairs
            ours["pair_stem.encoder.table.weight"] = torch.cat([reference[key], torch.zeros(1, 8)])
        if (key := f"{stem}pe_gbk.means.weight") in reference:
            ours["pair_stem.encoder.mean"] = reference[key]
            ours["pair_stem.encoder.spread"] = reference[f"{stem}pe_gbk.stds.weight"]
        if (key := f"{stem}rwse_dst_fc.weight") in reference:
            both = [reference[key], reference[f"{stem}rwse_src_fc.weight"]]
            ours["pair_stem.mix.projection.weight"] = torch.cat(both, dim=1)
        return ours


def small_recipe(name: str, support: str | int, encoding: str) -> CKGCNRecipe:
    """The published settings at the recorded size: 2 blocks, width 8, no dropout."""
    model = recipe(name).model
    steps = {"rrwp": 5, "spd": 21, "rd": 0, "pair_rwse": 20}[encoding]
    return replace(
        model,
        width=8,
        blocks=LAYERS,
        steps=steps,
        node_steps=20,
        support=support,
        encoding=encoding,
        kernel=KernelRecipe(),
        node=AttributeRecipe("types", (21,)) if name == "zinc" else model.node,
    )


def observe(model: CKGCN, run) -> dict[str, Tensor]:
    """Every recorded intermediate, read by hooks while `run` evaluates the model."""
    seen: dict[str, Tensor] = {}

    def output(name):
        return lambda module, inputs, result: seen.__setitem__(name, result)

    def both(before, after):
        def hook(module, inputs, result):
            seen[before], seen[after] = inputs[0], result

        return hook

    def kernels(module, inputs, result):
        for layer, values in enumerate(result):
            seen[f"psi/{layer}"] = values.stored

    def hidden(module, inputs, result):
        seen["head_input"] = inputs[0]

    hooks = [
        (model.node_stem.encoding_norm, output("node_pe_norm")),
        (model.node_stem.mix.projection, output("node_pe_proj")),
        (model.node_stem.norm, both("node_pre_norm", "h/0")),
        (model.pair_stem.norm, both("pair_pre_norm", "e0")),
        (model.kernel, kernels),
        (model.pool, output("pooled")),
    ]
    if model.recipe.encoding == "rrwp":
        hooks.append((model.pair_stem.encoder.norm, both("pair_rescaled", "pair_affine")))
        hooks.append((model.pair_stem.mix.projection, output("pair_proj")))
    for layer, block in enumerate(model.blocks):
        hooks.append((block.convolution.degree_scaler, both(f"conv_mean/{layer}", f"conv_scaled/{layer}")))
        hooks.append((block.convolution, output(f"conv_out/{layer}")))
        hooks.append((block.convolution_norm, output(f"mid/{layer}")))
        hooks.append((block, output(f"h/{layer + 1}")))
    for level, linear in enumerate(model.head.linears):
        hooks.append((linear, both(f"head_hidden/{level - 1}", f"head_pre/{level}")))
    handles = [module.register_forward_hook(hook) for module, hook in hooks]
    seen["pred"] = run()
    for handle in handles:
        handle.remove()
    if "pair_affine" in seen:
        norm = model.pair_stem.encoder.norm
        seen["pair_norm"] = (seen["pair_affine"] - norm.shift) / norm.scale
    return seen
