"""`ckgconv campaign`: train, ask for the status, declare final, go on; and what is refused."""

import json
import re
from pathlib import Path

import pytest
from campaign_files import values

from ckgconv.campaigns import queue
from ckgconv.campaigns.worker import Task, work
from ckgconv.engine.lock import locked


@pytest.fixture(autouse=True)
def _workers_here(monkeypatch):
    """Workers run in this process, which takes a second in place of ten."""

    class Here(Task):
        @property
        def command(self):
            work(self)
            return ["true"]

    monkeypatch.setattr(queue, "Task", Here)


def write(**more) -> Path:
    Path("small.json").write_text(json.dumps(values(**more)))
    return Path("small.json")


def test_a_campaign_from_its_file_to_its_page(ckgconv):
    code, out, err = ckgconv("campaign", write(), "--device", "cpu")
    assert code == 0, err
    assert "small, not final: no run is tested" in out
    assert "1 done. Left: nothing." in out
    folder = Path("runs/campaigns/small")
    assert {"README.md", "figure.png", "table.json", "history.json", "campaign.json"} <= {
        path.name for path in folder.iterdir()
    }
    code, out, _ = ckgconv("campaign", "status", folder, "--json")
    (run,) = json.loads(out)["runs"]
    assert (run["state"], run["epochs"], run["of"], run["recipe"]) == ("done", 3, 3, "zinc-demo")
    assert ckgconv("campaign", "status", "small", "--json")[1] == out
    folder = folder.rename("elsewhere")
    file = folder / "campaign.json"
    file.write_text(file.read_text().replace('"final": false', '"final": true'))
    code, out, _ = ckgconv("campaign", folder, "--device", "cpu")
    assert code == 0
    assert "small, final" in out
    record = json.loads(next(folder.glob("runs/*/record.json")).read_text())
    assert record["best"]["test"] is not None
    assert [event["event"] for event in json.loads((folder / "history.json").read_text())] == [
        "created",
        "declared final",
    ]
    code, _, err = ckgconv("campaign", "small.json", "--out", folder)
    assert code == 2
    assert "a final campaign stays final" in err
    assert ckgconv("campaign", file, "--device", "cpu")[0] == 0


def test_failures_end_with_code_1_and_a_piece_with_0(ckgconv, monkeypatch):
    code, out, _ = ckgconv("campaign", write(grid={"seeds": [0, 1]}), "--seconds", "0", "--device", "cpu")
    assert code == 0
    assert re.search(r"1 stopped, 1 waiting\. Left: about \d+ s at 1 at once\.", out)
    monkeypatch.setattr(Task, "command", property(lambda task: ["false"]), raising=False)
    monkeypatch.setattr(queue, "Task", Task)
    code, out, _ = ckgconv("campaign", "small.json", "--device", "cpu")
    assert code == 1
    assert "failed: it printed nothing" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["main-tabel"], "There is no campaign 'main-tabel': did you mean main-table?"),
        (["status"], "'status' was given without a folder"),
        (["status", "nowhere"], "nowhere is no campaign that has begun: give its folder, such as runs/campaigns/NAME."),
        (["status", "small.json"], "small.json is no campaign that has begun: give its folder"),
        (["main-table", "folder"], "folder was given after main-table: name the campaign's folder with --out."),
        (["main-table", "--device", "abacus"], "device is 'abacus': choose one of auto, cpu, cuda."),
    ],
)
def test_mistakes_are_sentences(ckgconv, arguments, sentence):
    code, _, err = ckgconv("campaign", *arguments)
    assert code == 2
    assert err.startswith(f"Error: {sentence}")


def test_two_at_a_time_and_torchrun_are_refused(ckgconv, monkeypatch):
    with locked(Path("there")):
        code, _, err = ckgconv("campaign", write(), "--out", "there")
        assert code == 2
        assert "there is being trained by process" in err
    monkeypatch.setenv("WORLD_SIZE", "2")
    code, _, err = ckgconv("campaign", write())
    assert code == 2
    assert "without torchrun" in err
