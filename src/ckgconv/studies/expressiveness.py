"""Expressiveness (Section 3.3, Proposition 3.1): CKGCN against the GD-WL test that bounds it.

CKGCN separates G and H  ⇒  GD-WL with the same distance does            by every network, at every width
GD-WL separates G and H  ⇒  some CKGCN with the same distance does       as the width grows
"""

from collections.abc import Mapping
from statistics import mean
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from torch_geometric.data import Data

from ckgconv.data.expressiveness import GraphPairs, brec, csl, csl_folds, exp, exp_file, sr25
from ckgconv.studies.oracle import STEPS, classes
from ckgconv.studies.processes import in_one_thread
from ckgconv.studies.random_network import BLOCKS, MARGIN, DistanceName
from ckgconv.studies.report import Cell, Options, Report, markdown_table, new_figure, spread
from ckgconv.studies.separation import NETWORKS, Family, consult_oracle, draw_networks, raw, statistics_sample
from ckgconv.studies.trained_network import WIDTH as TRAINED_WIDTH
from ckgconv.studies.trained_network import classifier_recipe, contrast, exp_split, trained_accuracy

SEEDS = (0, 1)
WIDTHS = (4, 16, 64)
# EXP has as many pairs of nodes as all other sets together, and small networks separate it.
EXP_WIDTHS = (4, 16)
STEPS_OF_CONTRAST = 30
CSL_EPOCHS = 50
EXP_EPOCHS = 8
COLOURS: dict[DistanceName, str] = {"SPD": "tab:orange", "RD": "tab:green", "RRWP": "tab:blue"}


def expressiveness(options: Options) -> Report:
    """All four families; EXP where its file is in the data folder."""
    seeds = options.seeds or SEEDS
    formulas = exp(options.data_dir) if exp_file(options.data_dir) is not None else None
    regular, hard = Family(sr25(), WIDTHS), Family(brec(), WIDTHS)
    families = [Family(csl(), WIDTHS), regular, hard]
    if formulas is not None:
        families.insert(2, Family(formulas, EXP_WIDTHS))
    sample = statistics_sample(hard.pairs)
    for family in families:
        consult_oracle(family)
    draw_networks(families, seeds, sample)
    trained = by_class(formulas, options.epochs, seeds[0])
    for family in (regular, hard):
        trained |= by_contrast(family, seeds, sample)
    return Report(
        title=finding(families, trained),
        columns=COLUMNS,
        rows=[row for family in families for row in rows(family, trained)],
        figure=draw(families, finding(families, trained)),
        notes=(
            claim(families, trained),
            by_width(families),
            skip_links(trained["CSL"]),
            setting(seeds, options.epochs),
            *without_exp(formulas),
        ),
        values={"families": {family.pairs.group[0]: raw(family) for family in families}, "trained": trained},
        seeds=seeds,
    )


COLUMNS = (
    "pairs of graphs",
    "of",
    "1-WL",
    *(f"{name}: {kind}" for name in NETWORKS for kind in ("GD-WL", "CKGCN")),
    "RRWP-CKGCN, trained",
)


def by_class(formulas: GraphPairs | None, epochs: int | None, seed: int) -> dict[str, Any]:
    """Test accuracies (%) of trained networks: CSL by distance and fold, EXP by RRWP."""
    folds = csl_folds()
    tasks = [
        (classifier_recipe(distance, 10), fold, epochs or CSL_EPOCHS, seed) for distance in NETWORKS for fold in folds
    ]
    if formulas is not None:
        recipe = classifier_recipe("RRWP", 2, node_types=2)
        tasks.append((recipe, exp_split(formulas, seed), epochs or EXP_EPOCHS, seed))
    reached = in_one_thread(trained_accuracy, tasks)
    found: dict[str, Any] = {"CSL": {name: [reached.pop(0) for _ in folds] for name in NETWORKS}}
    return found | ({"EXP": {"RRWP": reached}} if formulas is not None else {})


def by_contrast(family: Family, seeds: tuple[int, ...], sample: Data) -> dict[str, Any]:
    """By group: pairs that networks trained on one pair each separate, of all and beyond GD-WL.

    Training may end in a network that gives every graph the same output: where GD-WL separates a pair and the network
    does not, the next seed is tried.
    """
    bound = family.oracle["RRWP"]
    separated, difference = np.zeros(len(bound), bool), np.zeros(len(bound))
    for number, seed in enumerate(seeds):
        tried = (bound & ~separated).nonzero()[0].tolist() if number else range(len(bound))
        tasks = [(family.pairs.chosen([q]), "RRWP", STEPS_OF_CONTRAST, seed, sample) for q in tried]
        for q, run in zip(tried, in_one_thread(contrast, tasks), strict=True):
            separated[q], difference[q] = bool(run.separated[0]), float(run.difference[0])
    return {
        name: {
            "separated": int(separated[inside].sum()),
            "beyond GD-WL": int((separated & ~bound)[inside].sum()),
            "missed": int((bound & ~separated)[inside].sum()),
            "difference": difference[inside].tolist(),
        }
        for name, inside in family.groups().items()
    }


def rows(family: Family, trained: dict[str, Any]) -> list[tuple[Cell, ...]]:
    """One per group, and a sum where there are several."""
    groups = family.groups()
    found: list[tuple[Cell, ...]] = [(name, *counts(family, name), trained_cell(name, trained)) for name in groups]
    if len(groups) > 1:
        total = tuple(sum(column) for column in zip(*(counts(family, name) for name in groups), strict=True))
        found.append(("**BREC, all**", *total, sum(trained[name]["separated"] for name in groups)))
    return found


def counts(family: Family, group: str) -> tuple[int, ...]:
    """Pairs, 1-WL, then GD-WL and the widest CKGCN by distance."""
    inside = family.groups()[group]
    both = [found for name in NETWORKS for found in (family.oracle[name], family.found(name))]
    return int(inside.sum()), *(int(found[inside].sum()) for found in (family.oracle["1-WL"], *both))


def trained_cell(group: str, trained: dict[str, Any]) -> Cell:
    """What training adds to a row."""
    if "separated" in trained[group]:
        separated: int = trained[group]["separated"]
        return separated
    return f"accuracy {mean(trained[group]['RRWP']):.1f} %"


def by_training(trained: dict[str, Any], kind: str) -> int:
    """Pairs "beyond GD-WL" or "missed" by trained networks."""
    return sum(group.get(kind, 0) for group in trained.values())


def finding(families: list[Family], trained: dict[str, Any]) -> str:
    """The title, from the numbers: what any network has beyond GD-WL, and what random ones miss."""
    beyond = sum(family.beyond(name) for family in families for name in NETWORKS) + by_training(trained, "beyond GD-WL")
    missed = sum(family.missed(name) for family in families for name in NETWORKS)
    if not beyond and not missed:
        return "CKGCN separates exactly the pairs of graphs that its GD-WL test does"
    return f"CKGCN separates {beyond} pairs of graphs beyond its GD-WL test and misses {missed} of those it allows"


def claim(families: list[Family], trained: dict[str, Any]) -> str:
    """What the paper claims, and what was found."""
    beyond = {name: sum(family.beyond(name) for family in families) for name in NETWORKS}
    missed = {name: sum(family.missed(name) for family in families) for name in NETWORKS}
    rings = families[0]
    fallen = {name: classes(rings.pairs, rings.oracle[name]) for name in ("1-WL", *NETWORKS)}
    return (
        "The paper prints no counts; it claims (Proposition 3.1) that CKGCN is as powerful as GD-WL with the same "
        "distance: each CKGCN column should equal the GD-WL column to its left. Pairs separated beyond GD-WL by any "
        f"random network of any width: {listed(beyond)}; by trained ones: {by_training(trained, 'beyond GD-WL')}. "
        f"Pairs that GD-WL separates and the widest random networks do not: {listed(missed)}; trained ones: "
        f"{by_training(trained, 'missed')}. Classes of CSL under GD-WL, of 10: {listed(fallen)}."
    )


def by_width(families: list[Family]) -> str:
    """Counts on the last family, BREC, as the networks grow."""
    hard = families[-1]
    cells: list[tuple[Cell, ...]] = [
        (f"CKGCN, width {width}", *(int(hard.found(name, width).sum()) for name in NETWORKS)) for width in hard.widths
    ]
    bound: tuple[Cell, ...] = ("GD-WL", *(int(hard.oracle[name].sum()) for name in NETWORKS))
    table = markdown_table(("BREC, pairs of 400", *NETWORKS), [*cells, bound])
    return f"Width is what CKGCN needs to reach its bound:\n\n{table}"


def skip_links(accuracies: dict[DistanceName, list[float]]) -> str:
    """Trained networks of every distance on CSL."""
    found = ", ".join(f"{name} {spread(values)} %" for name, values in accuracies.items())
    return (
        f"Trained on CSL, test accuracy over the folds: {found}. SPD cannot distinguish skips 6 and 16, and one of the "
        "two is wrong whatever a network answers: 90 % is the most it can reach on a stratified fold."
    )


def setting(seeds: tuple[int, ...], epochs: int | None) -> str:
    """How the numbers were made."""
    return f"""\
GD-WL starts from equal colours and refines until stable, in float64; distances closer than 1e-9 are equal; RRWP is I
and {STEPS} powers. RD comes from the inverse of L + 11ᵀ/n on each component.

Random weights: {BLOCKS} blocks, float64, {len(seeds)} seeds, widths {", ".join(map(str, WIDTHS))} (EXP
{", ".join(map(str, EXP_WIDTHS))}); a pair counts for a width if the network of any seed separates it, and the table
shows the largest width. One network serves all graphs: its norms are frozen at the statistics of one sample of BREC,
so that no graph sees another. Separated means that outputs differ by more than {MARGIN:.0f} times the noise, which is
the largest difference between the outputs of any graph of the set and of the same graph with its nodes relabelled.
Every matrix, γ, β and Gaussian is drawn, more widely than the published start. Nodes carry no attributes.

Trained: {TRAINED_WIDTH} channels. CSL: two blocks, {epochs or CSL_EPOCHS} epochs, mean test accuracy of the five
published folds, last epoch. EXP: two blocks, {epochs or EXP_EPOCHS} epochs, 80 % of the pairs train and 20 % test,
node types given, one split. SR25 and BREC, shortened: one network per pair in float64, {STEPS_OF_CONTRAST} steps
that minimise the cosine of the two outputs, then the same test as for random weights; where it finds no difference
and GD-WL does, once more with the next seed. The published protocol of BREC trains on 32 relabelled copies of each
graph and judges by Hotelling's T².

Every network is drawn, trained and measured in one thread: with two threads a few of the trained networks differ.
Another processor or version of torch may have the same effect. EXP is read from `exp.npz` in the folder that
CKGCONV_DATA or --data-dir names."""


def without_exp(formulas: GraphPairs | None) -> tuple[str, ...]:
    if formulas is not None:
        return ()
    return (
        "EXP is missing: exp.npz is not in the data folder. Its licence (GPL-3) keeps it out of the package; name "
        "a folder that holds it by --data-dir or CKGCONV_DATA.",
    )


def listed(numbers: Mapping[DistanceName, int] | Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


def draw(families: list[Family], title: str) -> Figure:
    """Share of the pairs of each group: GD-WL as a wide pale bar, the widest CKGCN as a narrow one in front."""
    groups = [(family, name) for family in families for name in family.groups()]
    figure = new_figure(4.6)
    axes = figure.subplots()
    for place, (family, group) in enumerate(groups):
        inside = family.groups()[group]
        for shift, distance in enumerate(NETWORKS):
            x = place + 0.27 * (shift - 1)
            bound, found = (100 * both[inside].mean() for both in (family.oracle[distance], family.found(distance)))
            axes.bar(x, bound, 0.25, color=COLOURS[distance], alpha=0.3, label=legend(place, f"GD-WL, {distance}"))
            axes.bar(x, found, 0.11, color=COLOURS[distance], label=legend(place, f"CKGCN, {distance}"))
            if not bound and not found:
                axes.text(x, 1, "0", ha="center", fontsize=8, color=COLOURS[distance])
    start = len(groups) - len(families[-1].groups())
    axes.axvline(start - 0.5, color="black", linewidth=0.8, linestyle=":")
    axes.text(start - 0.4, 106, "BREC →", fontsize=9)
    axes.set_xticks(range(len(groups)), [tick(family, name) for family, name in groups], fontsize=8.5)
    axes.set_ylabel("pairs separated (%)")
    axes.set_ylim(0, 114)
    axes.set_yticks(range(0, 101, 20))
    axes.margins(x=0.01)
    axes.set_title(title)
    axes.set_axisbelow(True)
    axes.grid(axis="y", alpha=0.3)
    figure.legend(ncols=3, loc="outside lower center", fontsize=8.5, frameon=False)
    return figure


def tick(family: Family, group: str) -> str:
    """Name of a group on lines of its own, and its pairs."""
    return group.removeprefix("BREC ").replace(" ", "\n") + f"\n({family.groups()[group].sum()})"


def legend(place: int, name: str) -> str | None:
    """A label for the first group only."""
    return None if place else name
