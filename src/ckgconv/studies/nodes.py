"""Single graphs with labelled nodes: our recipes, GCN, GATv2, GraphSAGE and an MLP on the same splits and seeds.

    cora                 few labels, neighbours share their class       accuracy, the public split, five seeds
    minesweeper          many labels, neighbours differ                 AUROC, the first splits, one seed each
    chameleon-directed   edges have a direction                         accuracy, the first splits, one seed each
    cyclic-sbm           classes differ by direction alone              accuracy, one drawn graph, a few seeds

The test metric of a network is that of its best validation epoch: for baselines by the metric, for ours as its recipe
says.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean

import torch
from matplotlib.figure import Figure
from torch_geometric.utils import to_undirected

from ckgconv.data import PackedDataset, load
from ckgconv.engine.run import train
from ckgconv.graphs import pointer
from ckgconv.recipe import Recipe
from ckgconv.recipes import recipe
from ckgconv.studies.baselines import LAYERS, Fitted, Setting, fit_baseline
from ckgconv.studies.grid import plus_minus, shortened
from ckgconv.studies.processes import in_one_thread
from ckgconv.studies.report import Options, Report, new_figure

SEEDS = (0, 1, 2, 3, 4)
OURS, IGNORED = "ours", "ours, directions ignored"


@dataclass(frozen=True)
class Problem:
    """A graph, our recipe for it, and the setting of all baselines."""

    recipe: str
    setting: Setting
    several_splits: bool  # whether each seed has a split of its own
    directed: bool = False  # whether ours is also trained with directions ignored


PROBLEMS = {
    "cora": Problem("nodes-homophilous", Setting(2, 64, False, 0.6, 5e-3, 5e-4, 300), several_splits=False),
    "minesweeper": Problem("nodes-heterophilous", Setting(4, 64, True, 0.2, 3e-3, 0.0, 500), several_splits=True),
    "chameleon-directed": Problem(
        "nodes-directed", Setting(2, 64, True, 0.5, 3e-3, 5e-4, 200), several_splits=True, directed=True
    ),
    "cyclic-sbm": Problem("cyclic-sbm", Setting(3, 64, True, 0.2, 3e-3, 0.0, 300), several_splits=False, directed=True),
}
Fits = dict[str, dict[str, list[Fitted]]]  # by graph, then by network

NOTE = """\
Each network is trained on the training nodes; its test metric is that of its best validation epoch, which for ours on
cora is that of the least validation loss and otherwise that of the best validation metric. Seeds are named below; of
graphs with ten splits, seed s uses split s. Mean ± s.d. (dividing by n - 1). The baselines are PyG's layers in the form
that serves each graph: on cora {cora}; on minesweeper {minesweeper}; on chameleon-directed {chameleon}; on cyclic-sbm
{cyclic}.
Baselines ignore the direction of edges, as the data set's authors do. Rows of features are divided by their sums. No
setting of any network was chosen by a test split."""


def nodes(options: Options) -> Report:
    """Ours and four baselines on four graphs."""
    names = [options.data] if options.data else list(PROBLEMS)
    seeds = options.seeds or SEEDS
    tasks = [(name, network, seed, options) for name in names for network in networks(name) for seed in seeds]
    in_parallel = device_of(options) == "cpu"
    outcomes = in_one_thread(outcome, tasks) if in_parallel else [outcome(*task) for task in tasks]
    fits: Fits = {name: {network: [] for network in networks(name)} for name in names}
    for (name, network, _, _), fitted in zip(tasks, outcomes, strict=True):
        fits[name][network].append(fitted)
    title = finding(fits)
    return Report(
        title=title,
        columns=("graph", "network", "metric", "validation", "test", "best epoch", "parameters", "seconds"),
        rows=[row(name, network, runs) for name, by_network in fits.items() for network, runs in by_network.items()],
        figure=draw(title, fits),
        notes=(NOTE.format(**{name.split("-")[0]: described(each.setting) for name, each in PROBLEMS.items()}),),
        values={name: {n: [asdict(run) for run in runs] for n, runs in by.items()} for name, by in fits.items()},
        seeds=seeds,
    )


def device_of(options: Options) -> str:
    """Where all networks are trained."""
    return "cpu" if options.device == "cpu" or not torch.cuda.is_available() else "cuda"


def networks(name: str) -> list[str]:
    """The rows of a graph."""
    return [OURS, *([IGNORED] if PROBLEMS[name].directed else []), *LAYERS]


def outcome(name: str, network: str, seed: int, options: Options) -> Fitted:
    """One training."""
    problem = PROBLEMS[name]
    chosen = recipe(problem.recipe)
    number = seed % 10 if problem.several_splits else 0
    data = load(replace(chosen.data, split_number=number), options.data_dir)
    if network != OURS:
        data = undirected(data)
    if network in LAYERS:
        setting = problem.setting if options.epochs is None else replace(problem.setting, epochs=options.epochs)
        return fit_baseline(network, setting, data, chosen, seed, device_of(options))
    return fit_ours(shortened(chosen, options.epochs), data, seed, options.device)


def fit_ours(chosen: Recipe, data: PackedDataset, seed: int, device: str) -> Fitted:
    """A recipe, trained by the engine."""
    record = train(chosen, seed, data=data, device=device).record
    assert record.best is not None
    assert record.best.test is not None
    return Fitted(record.best.val, record.best.test, record.best.epoch, record.parameters, round(record.wall_s, 1))


def undirected(data: PackedDataset) -> PackedDataset:
    """A data set of one graph with every edge in both directions."""
    edges = to_undirected(data.edge_index.long(), num_nodes=len(data.x))
    return replace(data, edge_index=edges, edge_ptr=pointer(torch.tensor([edges.shape[1]])))


def described(setting: Setting) -> str:
    """A setting in words."""
    form = "residual layers" if setting.residual else "layers"
    return (
        f"{setting.layers} {form} of width {setting.width}, dropout {setting.dropout}, Adam at {setting.learning_rate} "
        f"with decay {setting.weight_decay}, {setting.epochs} epochs"
    )


def row(name: str, network: str, runs: Sequence[Fitted]) -> tuple[str | int | float | None, ...]:
    """A network on a graph."""
    metric = recipe(PROBLEMS[name].recipe).training.metric
    scores = plus_minus([run.val for run in runs]), plus_minus([run.test for run in runs])
    epoch, seconds = round(mean(run.epoch for run in runs)) + 1, round(mean(run.seconds for run in runs), 1)
    return name, network, metric, *scores, epoch, runs[0].parameters, seconds


def finding(fits: Fits) -> str:
    """The title, from the numbers."""
    parts = []
    for name, by_network in fits.items():
        tests = {network: mean(run.test for run in runs) for network, runs in by_network.items()}
        rival = max(LAYERS, key=lambda network: tests[network])
        parts.append(f"{name} {tests[OURS]:.3f} (best baseline, {rival}: {tests[rival]:.3f})")
    return "Test metric of ours: " + "; ".join(parts)


def draw(title: str, fits: Fits) -> Figure:
    """Test metrics, every run a dot, means as bars; one panel per graph."""
    figure = new_figure(3.6)
    panels = figure.subplots(1, len(fits), squeeze=False)[0]
    for axes, (name, by_network) in zip(panels, fits.items(), strict=True):
        for place, (network, runs) in enumerate(by_network.items()):
            colour, tests = "tab:blue" if network in (OURS, IGNORED) else "tab:gray", [run.test for run in runs]
            axes.plot(tests, [place] * len(tests), "o", color=colour, alpha=0.6)
            axes.plot(mean(tests), place, "|", color=colour, markersize=18, markeredgewidth=2)
        axes.set_yticks(range(len(by_network)), [network.replace(", ", ",\n") for network in by_network], fontsize=9)
        axes.invert_yaxis()
        axes.set_xlabel(f"test {recipe(PROBLEMS[name].recipe).training.metric}")
        axes.set_title(name, fontsize=10)
        axes.grid(axis="x", alpha=0.3)
    figure.suptitle(title, fontsize=10, wrap=True)
    return figure
