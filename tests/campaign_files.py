"""Files of small campaigns, and their folders."""

import json
from pathlib import Path

from ckgconv.campaigns.folder import CampaignFolder
from ckgconv.campaigns.plan import Campaign, campaign_from_json

SMALL = [
    *("data.limit=6", "model.blocks=1", "model.steps=3", "model.width=8"),
    *("training.epochs=3", "training.warmup_epochs=0"),
]


def values(**more) -> dict:
    """What the file of a small campaign holds."""
    grid = {"recipes": ["zinc-demo"], "seeds": [0], "changes": [SMALL], **more.pop("grid", {})}
    return {"format": 1, "name": "small", "shows": "A small campaign", "final": False, "grids": [grid], **more}


def campaign(**more) -> Campaign:
    return campaign_from_json(json.dumps(values(**more)), "small.json")


def adopted(path: Path, **more) -> CampaignFolder:
    """The folder of a campaign that is about to be trained."""
    path.mkdir(parents=True, exist_ok=True)
    folder = CampaignFolder(path)
    folder.adopt(campaign(**more))
    return folder
