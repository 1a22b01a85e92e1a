"""The page of a search: what was searched, all trials, the best recipe and its test."""

from typing import Any

from ckgconv.engine.record import read_record
from ckgconv.files import valid_json, write_text
from ckgconv.searching.figure import draw_search, importances
from ckgconv.searching.search import ended
from ckgconv.searching.study import BEST, RUN, SearchFolder
from ckgconv.searching.trial import EPOCHS, FAILURE


def write_page(search: SearchFolder, study: Any) -> None:
    """README.md and search.png."""
    draw_search(search, study, search.path / "search.png")
    write_text(search.path / "README.md", page(search, study))


def page(search: SearchFolder, study: Any) -> str:
    """README.md."""
    recipe, metric = search.recipe, search.recipe.training.metric
    return f"""# Search: {recipe.name}

{_outcome(search, study)}

Trials are judged by the validation {metric} of their best epoch, seed {search.seed}; one that falls behind the median
of the others is pruned. No trial reads the test split. `{BEST}` is the best recipe: `ckgconv train {BEST}`.

![History, importance and slices](search.png)

## Importance

{_importances(study)}

## Space

{_space(search)}

## Trials

{_trials(study, list(search.space.entries))}
"""


def _outcome(search: SearchFolder, study: Any) -> str:
    metric, record = search.recipe.training.metric, read_record(search.path / RUN)
    number, value = study.best_trial.number, study.best_value
    best = f"Best of {len(ended(study))} trials: number {number}, validation {metric} {value:.4f}."
    if record is None or record.test is None:
        return f"{best} Its recipe has not been tested."
    where = f"commit {record.commit or 'unknown'}, {record.device}, seed {record.seed}"
    return f"{best} Trained again and tested once: test {metric} {record.test:.4f} ({where}; a single run)."


def _importances(study: Any) -> str:
    found = importances(study)
    if not found:
        return "Too few trials were trained to the end."
    rows = "\n".join(f"| `{name}` | {value:.2f} |" for name, value in found.items())
    return f"| setting | share of the spread (fANOVA) |\n|---|---|\n{rows}"


def _space(search: SearchFolder) -> str:
    rows = "\n".join(f"| `{path}` | `{valid_json(entry)}` |" for path, entry in search.space.entries.items())
    return f"| setting | values |\n|---|---|\n{rows}"


def _trials(study: Any, paths: list[str]) -> str:
    head = " | ".join(f"`{path.split('.', 1)[-1]}`" for path in paths)
    lines = [f"| trial | validation | epochs | {head} |", "|---" * (3 + len(paths)) + "|"]
    for each in sorted(ended(study), key=lambda trial: trial.number):
        value = f"{each.value:.4f}" if each.state.name == "COMPLETE" else each.state.name.lower()
        if FAILURE in each.user_attrs:
            value = "failed: " + str(each.user_attrs[FAILURE]).replace("|", "/").replace("\n", " ")
        cells = " | ".join(_cell(each.params.get(path)) for path in paths)
        lines.append(f"| {each.number} | {value} | {each.user_attrs.get(EPOCHS, '–')} | {cells} |")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
