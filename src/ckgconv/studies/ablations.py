"""The paper's ablations, each a grid of recipes that differ in one choice.

support         1, 3, 5, 11, 21 hops and the whole graph
kernel-depth    0, 1, 2 MLP blocks at one budget of parameters
pe              RRWP, RD, SPD, pair-RWSE
flexibility     any sign, or softmax over the support; next to GRIT's published figure
normalisation   BatchNorm or LayerNorm, in blocks and kernels
degree          scaler after the convolution (Eq. 7), inside the coordinates (Eq. 8), none
"""

from collections.abc import Callable, Sequence
from statistics import mean

from ckgconv.recipes import recipe
from ckgconv.recipes.variant import changed
from ckgconv.studies.grid import Outcome, Published, Variant, best_of, distinguished, grid_report, plus_minus, run_grid
from ckgconv.studies.report import Options, Report

READS = ("seeds", "epochs", "device", "precision", "keep", "workers", "data_dir")
# Widths that bring each number of blocks to the paper's parameter count.
DEPTH_WIDTHS = {0: 88, 1: 72, 2: 64}


def support(options: Options) -> Report:
    """How far a kernel must reach."""
    paper = {
        1: ((0.073, 0.005), (33.1, 1186)),
        3: ((0.063, 0.002), (33.6, 1522)),
        5: ((0.061, 0.004), (35.2, 1624)),
        11: ((0.063, 0.002), (33.2, 2128)),
        21: ((0.060, 0.002), (34.8, 2148)),
    }
    base = recipe("zinc")
    variants = [Variant(f"{hops}-hop", changed(base, support=hops), test, cost) for hops, (test, cost) in paper.items()]
    variants.append(Variant("full", base, (0.059, 0.003), (35.4, 2148)))
    return _study(variants, options, _support_title)


def kernel_depth(options: Options) -> Report:
    """Whether a linear kernel is enough."""
    paper = {
        "zinc": {0: (0.074, 0.005), 1: (0.065, 0.005), 2: (0.059, 0.003)},
        "pattern": {0: (0.87355, 0.00230), 1: (0.88955, 0.00251), 2: (0.88661, 0.00142)},
    }
    name = options.data or "zinc"
    variants = [
        Variant(
            "1 block" if blocks == 1 else f"{blocks} blocks",
            changed(recipe(name), {"blocks": blocks}, width=DEPTH_WIDTHS[blocks]),
            test,
        )
        for blocks, test in paper[name].items()
    ]
    return _study(variants, options, _compared("0 blocks", "a linear kernel", "an MLP kernel"))


def pe(options: Options) -> Report:
    """Which pseudo-coordinates."""
    base = recipe("zinc")
    variants = [
        Variant("RRWP", base, (0.059, 0.003)),
        Variant("RD", changed(base, encoding="rd"), (0.062, 0.004)),
        Variant("SPD", changed(base, encoding="spd"), (0.072, 0.003)),
        Variant("pair-RWSE", changed(base, encoding="pair_rwse"), (0.081, 0.002)),
    ]
    return _study(variants, options, _best_encodings)


def flexibility(options: Options) -> Report:
    """Whether kernels need negative coefficients."""
    paper = {"zinc": ((0.059, 0.003), (0.073, 0.003)), "pattern": ((0.88661, 0.00143), (0.87000, 0.00002))}
    name = options.data or "zinc"
    flexible, blurring = paper[name]
    base = recipe(name)
    variants = [
        Variant("flexible", base, flexible),
        Variant("blurring", changed(base, {"constraint": "softmax"}), blurring),
    ]
    grit = Published("GRIT", {"zinc": (0.059, 0.002), "pattern": (0.87196, 0.00076)}[name])
    note = "GRIT, whose attention is a dynamic blurring kernel, as published."
    title = _compared("blurring", "a positive kernel", "a kernel of any sign")
    return _study(variants, options, title, note, published=(grit,))


def normalisation(options: Options) -> Report:
    """What LayerNorm, which erases the degree, costs."""
    base = recipe("zinc")
    variants = [
        Variant("BatchNorm", base, (0.059, 0.003)),
        Variant("LayerNorm", changed(base, {"norm": "layer"}, norm="layer")),
    ]
    return _study(variants, options, _compared("LayerNorm", "LayerNorm", "BatchNorm"))


def degree(options: Options) -> Report:
    """How much the degree scalers matter."""
    base = recipe("zinc")
    variants = [
        Variant("output (Eq. 7)", base, (0.059, 0.003)),
        Variant("coordinates (Eq. 8)", changed(base, degree_scaler="coordinates")),
        Variant("none", changed(base, degree_scaler="none")),
    ]
    return _study(variants, options, _compared("none", "no degree scaler", "a degree scaler"))


def _study(
    variants: list[Variant],
    options: Options,
    title: Callable[[list[Outcome]], str],
    *notes: str,
    published: Sequence[Published] = (),
) -> Report:
    outcomes = run_grid(variants, options)
    return grid_report(title(outcomes), outcomes, options, notes, published)


def _compared(worse: str, worse_words: str, better_words: str) -> Callable[[list[Outcome]], str]:
    """A title that states how one variant compares with the best of the others."""

    def title(outcomes: list[Outcome]) -> str:
        one = next(outcome for outcome in outcomes if outcome.variant.label == worse)
        other = best_of([outcome for outcome in outcomes if outcome is not one])
        differs = "is worse than" if best_of([one, other]) is other else "is better than"
        verdict = differs if distinguished(one, other) else "is not distinguished from"
        worse_first = worse_words[0].upper() + worse_words[1:]
        return f"{worse_first} {verdict} {better_words}: {plus_minus(one.tests)}, {plus_minus(other.tests)}"

    return title


def _best_encodings(outcomes: list[Outcome]) -> str:
    best = best_of(outcomes)
    equals = [one.variant.label for one in outcomes if one is not best and not distinguished(one, best)]
    rest = [one.variant.label for one in outcomes if one is not best and one.variant.label not in equals]
    tied = f", {' and '.join(equals)} not distinguished from it" if equals else ""
    are = "are" if len(rest) > 1 else "is"
    worse = f"; {' and '.join(rest)} {are} worse than {best.variant.label}" if rest else ""
    return f"{best.variant.label} has the best mean{tied}{worse}"


def _support_title(outcomes: list[Outcome]) -> str:
    one, whole = outcomes[0], outcomes[-1]
    verdict = "" if distinguished(one, whole) else ", not distinguished"
    return (
        f"Beyond one hop: MAE {mean(one.tests):.3f} with one hop, {mean(whole.tests):.3f} with the whole graph{verdict}"
    )
