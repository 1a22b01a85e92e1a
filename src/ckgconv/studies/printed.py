"""What the paper prints about significance: two results, mean ± s.d. of 4 runs, and what it says about them."""

from dataclasses import dataclass
from typing import Literal

from ckgconv.studies.printed_table import LOWER_IS_BETTER, PRINTED
from ckgconv.studies.t_test import Sample

PAPER_RUNS = 4
# Of the paper's ablations, sensitivity studies and ensembles, next to its tables of benchmarks.
FURTHER: dict[str, dict[str, str]] = {
    "ZINC": {
        "CKGCN, RD": "0.062 ± 0.004",
        "CKGCN, 1-hop": "0.073 ± 0.005",
        "CKGCN, 3-hop": "0.063 ± 0.002",
        "CKGCN, 5-hop": "0.061 ± 0.004",
        "CKGCN, 11-hop": "0.063 ± 0.002",
        "CKGCN, 21-hop": "0.060 ± 0.002",
        "CKGCN, blurring": "0.073 ± 0.003",
        "CKGCN, linear kernel": "0.074 ± 0.005",
        "GRIT ensemble": "0.054 ± 0.001",
        "CKGCN ensemble": "0.054 ± 0.002",
        "mixed ensemble": "0.051 ± 0.001",
    },
    "PATTERN": {"CKGCN, blurring": "87.000 ± 0.002", "CKGCN, linear kernel": "87.355 ± 0.230"},
}
# Results by data set and network.
RESULTS = {name: {**column, **FURTHER.get(name, {})} for name, column in PRINTED.items()}


def printed_sample(text: str) -> Sample:
    """A printed mean ± s.d. as numbers."""
    mean, deviation = (float(number) for number in text.split(" ± "))
    return Sample(mean, deviation, PAPER_RUNS)


@dataclass(frozen=True)
class Claim:
    """`better` has the better mean; the paper says whether the difference is significant, or nothing (None)."""

    data: str
    better: str
    other: str
    says: bool | None = None
    sides: Literal[1, 2] = 1

    @property
    def printed(self) -> tuple[str, str]:
        """Both results, as in the paper's tables."""
        return RESULTS[self.data][self.better], RESULTS[self.data][self.other]

    @property
    def samples(self) -> tuple[Sample, Sample]:
        """Both results as numbers."""
        better, other = self.printed
        return printed_sample(better), printed_sample(other)

    @property
    def higher_is_better(self) -> bool:
        return self.data not in LOWER_IS_BETTER


CLAIMS = (
    # Section 5.1: footnote on CIFAR10, and the long-range benchmarks.
    Claim("CIFAR10", "DGN", "CKGCN", says=False, sides=2),
    Claim("Peptides-func", "GRIT", "CKGCN", says=False),
    Claim("Peptides-func", "CKGCN", "GPS", says=True),
    Claim("Peptides-struct", "GRIT", "CKGCN", says=False),
    Claim("Peptides-struct", "CKGCN", "GPS", says=True),
    # The choice of encoding: RRWP and RD against the state of the art.
    Claim("ZINC", "CKGCN", "GRIT", says=False, sides=2),
    Claim("ZINC", "GRIT", "CKGCN, RD", says=False, sides=2),
    # Ensembles.
    Claim("ZINC", "mixed ensemble", "GRIT ensemble", says=True),
    Claim("ZINC", "mixed ensemble", "CKGCN ensemble", says=True),
    # Appendix B.3: one hop is significantly worse than every larger support.
    Claim("ZINC", "CKGCN, 3-hop", "CKGCN, 1-hop", says=True),
    Claim("ZINC", "CKGCN, 5-hop", "CKGCN, 1-hop", says=True),
    Claim("ZINC", "CKGCN, 11-hop", "CKGCN, 1-hop", says=True),
    Claim("ZINC", "CKGCN, 21-hop", "CKGCN, 1-hop", says=True),
    Claim("ZINC", "CKGCN", "CKGCN, 1-hop", says=True),
    # Compared by their means only.
    Claim("MNIST", "CKGCN", "GRIT"),
    Claim("CIFAR10", "GRIT", "CKGCN"),
    Claim("PATTERN", "CKGCN", "GRIT"),
    Claim("CLUSTER", "GRIT", "CKGCN"),
    Claim("ZINC", "CKGCN", "GPS"),
    Claim("MNIST", "CKGCN", "GPS"),
    Claim("CIFAR10", "CKGCN", "GPS"),
    Claim("PATTERN", "CKGCN", "GPS"),
    Claim("CLUSTER", "CKGCN", "GPS"),
    Claim("ZINC", "CKGCN", "CKGCN, blurring"),
    Claim("PATTERN", "CKGCN", "CKGCN, blurring"),
    Claim("ZINC", "CKGCN", "CKGCN, linear kernel"),
    Claim("PATTERN", "CKGCN", "CKGCN, linear kernel"),
)
