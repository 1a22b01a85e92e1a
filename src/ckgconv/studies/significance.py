"""Significance: the paper's statements recomputed from what it prints, and the same test on runs of one's own."""

from dataclasses import asdict

from matplotlib.figure import Figure

from ckgconv.checks import require
from ckgconv.studies.outcomes import Outcomes, read_outcomes
from ckgconv.studies.printed import CLAIMS, PAPER_RUNS, Claim
from ckgconv.studies.report import Cell, Options, Report, new_figure
from ckgconv.studies.t_test import Sample, TTest, sample, t_test
from ckgconv.tasks.metrics import METRICS

# The paper's level of significance.
LEVEL = 0.05

PAPER_NOTE = f"""\
Student's two-sample t-tests with equal variances, the test the paper names, from its printed mean ± s.d. of
{PAPER_RUNS} runs, at the level of {LEVEL}. "Better" is the network with the better mean, and the one-sided p-value
is that of its being better. The printed values are rounded, so small p-values have one digit at most. The deviations of
the ensembles come from bootstrapping, whose number of draws is not printed; {PAPER_RUNS} is assumed for them too. No
correction for several comparisons is made, here or in the paper. `table.json` has Welch's test, without equal
variances, for each."""
RUNS_NOTE = """\
Student's two-sample t-test with equal variances, between the test metrics at the best validation epoch; "better" is the
side with the better mean, and the one-sided p-value is that of its being better."""


def significance(options: Options) -> Report:
    """t-tests of the paper's tables, or of `runs` against other runs or the paper's number for their data set."""
    if options.runs:
        return compared_runs(options)
    require(not options.against, "--against was given without --runs: name the runs to compare as well.")
    return paper_claims()


def paper_claims() -> Report:
    """Every statement of the paper about significance, and its main comparisons."""
    tests = [(claim, t_test(*claim.samples, claim.higher_is_better)) for claim in CLAIMS]
    stated = [holds(claim, test) for claim, test in tests if claim.says is not None]
    title = f"{sum(stated)} of the paper's {len(stated)} statements about significance follow from its printed numbers"
    return Report(
        title=title,
        columns=("data set", "better", "other", "paper says", "p, one-sided", "p, two-sided", "follows"),
        rows=[claim_row(claim, test) for claim, test in tests],
        figure=draw_claims(title, tests),
        notes=(PAPER_NOTE,),
        values={"tests": [claim_values(claim, test) for claim, test in tests]},
    )


def holds(claim: Claim, test: TTest) -> bool:
    """Whether the paper's statement follows at its level."""
    return (decisive(claim, test) < LEVEL) == claim.says


def decisive(claim: Claim, test: TTest) -> float:
    """The p-value that the paper's statement is about."""
    return test.one_sided if claim.sides == 1 else test.two_sided


def claim_row(claim: Claim, test: TTest) -> tuple[Cell, ...]:
    """One comparison as a row of the table."""
    better, other = claim.printed
    says = "–" if claim.says is None else f"{'significant' if claim.says else 'not significant'}, {claim.sides}-sided"
    follows = "–" if claim.says is None else "yes" if holds(claim, test) else "no"
    names = f"{claim.better} {better}", f"{claim.other} {other}"
    return claim.data, *names, says, f"{test.one_sided:.2g}", f"{test.two_sided:.2g}", follows


def claim_values(claim: Claim, test: TTest) -> dict[str, object]:
    """One comparison for `table.json`."""
    welch = t_test(*claim.samples, claim.higher_is_better, equal_variance=False)
    return {**asdict(claim), "student": asdict(test), "welch": asdict(welch)}


def draw_claims(title: str, tests: list[tuple[Claim, TTest]]) -> Figure:
    """The p-value of each comparison, by what the paper says about it."""
    figure = new_figure(7.2)
    axes = figure.subplots()
    kinds = {True: ("significant", "tab:blue"), False: ("not significant", "tab:orange"), None: ("nothing", "tab:gray")}
    for says, (label, colour) in kinds.items():
        places = [place for place, (claim, _) in enumerate(tests) if claim.says is says]
        axes.scatter(
            [decisive(*tests[p]) for p in places], places, color=colour, label=f"paper says: {label}", zorder=3
        )
    axes.axvline(LEVEL, color="black", linewidth=1, linestyle="--")
    names = [f"{claim.data}: {claim.better} vs {claim.other}" for claim, _ in tests]
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(f"p-value of the t-test the paper names (dashed: {LEVEL})")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(0, 0.68), fontsize=9)
    figure.suptitle(title, fontsize=11)
    return figure


def compared_runs(options: Options) -> Report:
    """Runs against other runs, or against the paper."""
    ours = read_outcomes(options.runs)
    theirs = read_outcomes(options.against) if options.against else None
    other, other_name = the_other_side(ours, theirs)
    higher = METRICS[ours.metric].higher_is_better
    sides = [(ours.recipe, sample(ours.values)), (other_name, other)]
    (better_name, better), (worse_name, worse) = sorted(sides, key=lambda side: side[1].mean, reverse=higher)
    test = t_test(better, worse, higher)
    verdict = "significantly" if test.two_sided < LEVEL else "not significantly"
    title = f"Better {ours.metric}: {better_name}, {verdict} (p = {test.two_sided:.2g}, two-sided)"
    return Report(
        title=title,
        columns=("data set", "better", "other", "runs", "p, one-sided", "p, two-sided"),
        rows=[
            (
                ours.data,
                f"{better_name} {better}",
                f"{worse_name} {worse}",
                f"{better.runs} and {worse.runs}",
                f"{test.one_sided:.2g}",
                f"{test.two_sided:.2g}",
            )
        ],
        figure=draw_runs(title, ours.metric, sides),
        notes=(RUNS_NOTE,),
        values={"runs": asdict(ours), "against": None if theirs is None else asdict(theirs), "student": asdict(test)},
        seeds=tuple(sorted({*ours.seeds, *(() if theirs is None else theirs.seeds)})),
    )


def the_other_side(ours: Outcomes, theirs: Outcomes | None) -> tuple[Sample, str]:
    """What runs are compared with, and its name."""
    if theirs is None:
        require(
            len(ours.paper) == 2,
            f"The paper has no number for {ours.recipe}, and no --against was given: name the runs to compare with.",
        )
        return Sample(ours.paper[0], ours.paper[1], PAPER_RUNS), "the paper"
    for what in ("data", "metric"):
        one, other = getattr(ours, what), getattr(theirs, what)
        require(one == other, f"The runs differ in their {what} ({one}, {other}): compare runs of the same {what}.")
    # Two variants may keep one recipe's name.
    name = theirs.recipe if theirs.recipe != ours.recipe else f"{theirs.recipe} (against)"
    return sample(theirs.values), name


def draw_runs(title: str, metric: str, sides: list[tuple[str, Sample]]) -> Figure:
    """Mean and deviation of both sides."""
    figure = new_figure(2.8)
    axes = figure.subplots()
    for place, (_, each) in enumerate(sides):
        axes.errorbar(each.mean, place, xerr=each.deviation, fmt="o", capsize=5)
    axes.set_yticks(range(len(sides)), [name for name, _ in sides])
    axes.set_ylim(-0.6, len(sides) - 0.4)
    axes.set_xlabel(f"test {metric}, mean ± s.d. of the runs")
    axes.set_title(title)
    axes.grid(axis="x", alpha=0.3)
    return figure
