"""A report as one HTML file, which opens from disk and loads nothing: it holds its styles and pictures, no script."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from ckgconv.checks import require
from ckgconv.engine.members import is_ensemble
from ckgconv.engine.run import Run
from ckgconv.files import write_text
from ckgconv.recipes import to_json
from ckgconv.report.data_sections import data_section, splits_section
from ckgconv.report.element import Html, element, joined, table
from ckgconv.report.molecule_sections import explained_section, worst_section
from ckgconv.report.score_sections import curves_section, scores_section, summary, uncertainty_section
from ckgconv.report.source import Source, source_of
from ckgconv.report.style import STYLE

FILE = "report.html"
# A browser must load nothing for this page, whatever its text says.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
LINKS = {
    "data": "Data",
    "splits": "Splits",
    "training": "Training",
    "predictions": "Predictions",
    "uncertainty": "Uncertainty",
    "worst": "Worst predictions",
    "explanations": "Explanations",
    "settings": "Settings",
}


def write_report(runs: Run | Sequence[Run], path: Path | None = None) -> Path:
    """Write the report of a run, or of runs that predict together, opened with their data or trained here.

    `path` is by default report.html in the folder of the run.
    """
    members = [runs] if isinstance(runs, Run) else list(runs)
    require(len(members) > 0, "No run was given: give one to report on.")
    members[0].check_data()
    folder = members[0].folder
    if path is None:
        require(folder is not None, "The run is in memory and has no folder: say where the report is to be written.")
        assert folder is not None
        path = folder / FILE
    source = source_of(members, folder if folder is not None and len(members) == 1 else path.parent)
    write_text(path, page(source))
    return path


def page(source: Source) -> str:
    """The whole page."""
    title = f"{source.run.recipe.name}, seed {source.run.record.seed}"
    if len(source.runs) > 1:
        title = f"{source.run.recipe.name}, {len(source.runs)} members"
    sections = [
        data_section(source),
        splits_section(source),
        curves_section(source),
        scores_section(source) if not source.run.model.predicts_nodes else Html(""),
        uncertainty_section(source),
        worst_section(source),
        explained_section(source),
        settings_section(source),
    ]
    body = joined(each for each in sections if each)
    links = [element("a", words, href=f"#{name}") for name, words in LINKS.items() if f'<section id="{name}">' in body]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"Report: {title}"),
        element("style", Html(STYLE)),
    )
    notes = [element("p", note, class_="note") for note in source.notes]
    top = element("header", element("h1", title), summary(source), element("nav", *links), *notes)
    return "<!doctype html>\n" + element("html", head, element("body", element("main", top, body)), lang="en") + "\n"


def settings_section(source: Source) -> Html:
    """How to compute the run again: command, seed, commit, device, versions, recipe."""
    run = source.run
    record = run.record
    lines = [
        ("seed", record.seed),
        ("commit of ckgconv", record.commit or "unknown (an installed package)"),
        ("device, precision", f"{record.device}, {record.precision}"),
        ("parameters", f"{record.parameters:,}"),
        ("seconds of training, peak memory", f"{record.wall_s:,.0f} s, {record.peak_memory_mb:,} MB"),
        ("data", _identity(run)),
        ("versions", ", ".join(f"{name} {version}" for name, version in sorted(record.versions.items()))),
    ]
    recipe = json.dumps(json.loads(to_json(run.recipe)), indent=1, ensure_ascii=False)
    return element(
        "section",
        element("h2", "Settings"),
        element("p", "The same numbers again on the same device, and this page again:"),
        element("pre", "\n".join(_commands(source))),
        table(("", ""), lines, numbers=False),
        element("details", element("summary", "The recipe"), element("pre", recipe)),
        id="settings",
    )


def _identity(run: Run) -> str:
    data = run.record.data
    if data is None:
        return run.recipe.data.name
    return f"{Path(run.recipe.data.name).name}, digest {data.digest[:16]}"


def _commands(source: Source) -> list[str]:
    """Train the run again, or all members of an ensemble, and write this page again."""
    run, record = source.run, source.run.record
    recipe_file = "recipe.json" if run.folder is None else str(run.folder / "recipe.json")
    command = f"ckgconv train {shlex.quote(recipe_file)} --seed {record.seed}"
    whole = run.folder
    if is_ensemble(source.folder):
        whole = source.folder
        command += f" --ensemble-size {len(source.runs)}"
    out = "OUT" if whole is None else f"{whole}-again"
    again = [f"{command} --precision {record.precision} --out {shlex.quote(out)}"]
    return again if whole is None else [*again, f"ckgconv report {shlex.quote(str(whole))}"]
