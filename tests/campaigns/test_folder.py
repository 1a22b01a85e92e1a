"""The folder of a campaign: its history, and changes of the file that are refused."""

import json

import pytest
from campaign_files import adopted, campaign

from ckgconv import InputError
from ckgconv.campaigns.folder import ADDED, CREATED, FINAL, CampaignFolder


def events(folder: CampaignFolder) -> list[str]:
    return [event.event for event in folder.history()]


def test_a_campaign_is_created_once_and_declared_final_once(tmp_path):
    folder = adopted(tmp_path)
    assert events(folder) == [CREATED]
    folder.adopt(campaign())
    assert events(folder) == [CREATED]
    folder.adopt(campaign(final=True))
    folder.adopt(campaign(final=True))
    assert events(folder) == [CREATED, FINAL]
    assert folder.campaign().final
    assert folder.history()[1].time.endswith("+00:00")
    with pytest.raises(InputError, match=r"was declared final at 20.*a final campaign stays final"):
        folder.adopt(campaign())
    assert folder.campaign().final


def test_a_campaign_may_be_final_from_the_beginning(tmp_path):
    assert events(adopted(tmp_path, final=True)) == [CREATED, FINAL]


def test_once_a_run_is_trained_runs_can_only_be_added(tmp_path):
    folder = adopted(tmp_path)
    folder.adopt(campaign(grid={"seeds": [1]}))  # nothing is trained: anything may change
    assert events(folder) == [CREATED, ADDED]
    folder.run(folder.campaign().runs()[0]).mkdir(parents=True)
    folder.adopt(campaign(grid={"seeds": [1, 2, 0]}))
    assert events(folder) == [CREATED, ADDED, ADDED]
    for changed in ({"seeds": [0]}, {"seeds": [0, 1, 2], "changes": [["training.epochs=4"]]}):
        with pytest.raises(InputError, match=r"The file no longer has .* only add runs to its file"):
            folder.adopt(campaign(grid=changed))
    assert len(folder.campaign().runs()) == 3


def test_a_file_changed_inside_the_folder_is_held_to_the_same_history(tmp_path):
    folder = adopted(tmp_path)
    folder.run(folder.campaign().runs()[0]).mkdir(parents=True)
    (tmp_path / "campaign.json").write_text(campaign(grid={"changes": [["training.epochs=4"]]}).to_json())
    with pytest.raises(InputError, match="only add runs"):
        folder.adopt(folder.campaign())


def test_a_file_that_only_says_final_is_not_final_before_its_history_says_so(tmp_path):
    folder = adopted(tmp_path)
    file = tmp_path / "campaign.json"
    file.write_text(file.read_text().replace('"final": false', '"final": true'))
    assert not folder.campaign().final
    folder.adopt(campaign(final=True))
    assert folder.campaign().final


def test_the_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match=r"has no history\.json, but letter.txt"):
        adopted(tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("{", "is not JSON"), ("{}", "is damaged"), ('[{"time": 1}]', "time is 1: give a text")],
)
def test_a_damaged_history_is_refused(tmp_path, text, sentence):
    folder = adopted(tmp_path)
    (tmp_path / "history.json").write_text(text)
    with pytest.raises(InputError, match=sentence):
        folder.adopt(campaign())


def test_nothing_in_the_folder_is_absolute(tmp_path):
    folder = adopted(tmp_path)
    folder.write_failures({"a": "It failed."})
    assert folder.failures() == {"a": "It failed."}
    for file in tmp_path.glob("*.json"):
        json.loads(file.read_text())
        assert str(tmp_path) not in file.read_text()
