"""What the paper prints about significance: two results, mean ± s.d. of 4 runs, and what it says about them."""

from dataclasses import dataclass
from typing import Literal

from ckgconv.studies.t_test import Sample

PAPER_RUNS = 4
# Results by data set and network: the paper's Tables of benchmarks, ablations and sensitivity studies.
RESULTS: dict[str, dict[str, str]] = {
    "ZINC": {
        "CKGCN": "0.059 ± 0.003",
        "GRIT": "0.059 ± 0.002",
        "GPS": "0.070 ± 0.004",
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
    "MNIST": {"CKGCN": "98.423 ± 0.155", "GRIT": "98.108 ± 0.111", "GPS": "98.051 ± 0.126"},
    "CIFAR10": {"CKGCN": "72.785 ± 0.436", "GRIT": "76.468 ± 0.881", "GPS": "72.298 ± 0.356", "DGN": "72.838 ± 0.417"},
    "PATTERN": {
        "CKGCN": "88.661 ± 0.143",
        "GRIT": "87.196 ± 0.076",
        "GPS": "86.685 ± 0.059",
        "CKGCN, blurring": "87.000 ± 0.002",
        "CKGCN, linear kernel": "87.355 ± 0.230",
    },
    "CLUSTER": {"CKGCN": "79.003 ± 0.140", "GRIT": "80.026 ± 0.277", "GPS": "78.016 ± 0.180"},
    "Peptides-func": {"CKGCN": "0.6952 ± 0.0068", "GRIT": "0.6988 ± 0.0082", "GPS": "0.6535 ± 0.0041"},
    "Peptides-struct": {"CKGCN": "0.2477 ± 0.0018", "GRIT": "0.2460 ± 0.0012", "GPS": "0.2500 ± 0.0012"},
}
LOWER_IS_BETTER = ("ZINC", "Peptides-struct")


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
        better, other = ([float(number) for number in text.split(" ± ")] for text in self.printed)
        return Sample(better[0], better[1], PAPER_RUNS), Sample(other[0], other[1], PAPER_RUNS)

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
