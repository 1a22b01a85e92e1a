"""Requests and answers of the interface, from which /api/openapi.json is made."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _whole(text: str) -> str:
    """Refuse halves of characters, which JSON can write and no answer can repeat."""
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("half a character")
    return text


Text = Annotated[str, Field(strict=True), AfterValidator(_whole)]
Smiles = Annotated[Text, Field(description="A molecule as SMILES.", examples=["CCO"])]


Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
# Of the columns that the network reads beside molecules, by name; null: unknown.
Features = dict[Text, Number | None]


class Asked(BaseModel):
    """A request: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class PredictRequest(Asked):
    """Molecules to predict."""

    smiles: list[Smiles] = Field(min_length=1, examples=[["CCO", "c1ccccc1"]])
    features: list[Features] | None = Field(
        None,
        description="Values of own columns, where the network reads any (see /api/model): one group for each molecule, "
        "or one for all; null where a value is unknown.",
        examples=[None],
    )


class ExplainRequest(Asked):
    """A molecule, and the target whose prediction is explained."""

    smiles: Smiles
    target: Text | None = Field(None, description="By default the first one.", examples=["logp"])
    features: Features | None = Field(
        None, description="Values of own columns, where the network reads any.", examples=[None]
    )


class TargetPrediction(BaseModel):
    """What is predicted for one target: a value in the units of the data, or a probability."""

    target: str = Field(examples=["logp"])
    value: float = Field(examples=[-0.31])
    deviation: float | None = Field(None, description="Between the members of an ensemble.", examples=[0.05])
    lower: float | None = Field(None, description="Lower end of the interval, where the run has one.", examples=[-0.6])
    upper: float | None = Field(None, description="Upper end of the interval.", examples=[0.0])
    calibrated: float | None = Field(None, description="The calibrated probability, where the run has a calibration.")


class MoleculePrediction(BaseModel):
    """One molecule: its predictions, or the reason why it has none."""

    smiles: str = Field(examples=["CCO"])
    predictions: list[TargetPrediction] = Field([], description="Empty where there is a reason.")
    similarity: float | None = Field(None, description="To the nearest molecule of training, 0 to 1.", examples=[0.62])
    nearest: str | None = Field(None, description="SMILES of that molecule.", examples=["CCCO"])
    outside: bool | None = Field(None, description="Whether it is unlike the molecules of training.", examples=[False])
    reason: str = Field("", description="Why nothing was predicted; empty otherwise.")


class PredictResponse(BaseModel):
    """A row for each molecule of the request, in its order."""

    molecules: list[MoleculePrediction]


class BondContribution(BaseModel):
    """What a bond contributes."""

    atoms: tuple[int, int] = Field(description="Numbers of its atoms.", examples=[(0, 1)])
    contribution: float = Field(examples=[0.04])


class ExplainResponse(BaseModel):
    """What atoms and bonds contribute to a prediction, in its unit; atoms are numbered as in the SMILES, from 0."""

    smiles: str = Field(examples=["CCO"])
    target: str = Field(examples=["logp"])
    unit: str = Field(description="Of all numbers here: the target, or its log-odds.", examples=["logp"])
    prediction: float = Field(examples=[-0.31])
    baseline: float = Field(description="The prediction at the baseline.", examples=[2.45])
    residual: float = Field(description="What contributions leave of prediction - baseline.", examples=[0.0001])
    descriptors: float = Field(0.0, description="Contribution of descriptors of the whole molecule, where it has any.")
    features: dict[str, float] = Field({}, description="Contribution of each own column, where it reads any.")
    atoms: list[float] = Field(description="Contribution of each atom.", examples=[[0.1, -0.9, -2.0]])
    bonds: list[BondContribution]
    sentence: str = Field(description="Whether contributions add up.", examples=["The contributions add up."])
    svg: str = Field(description="A drawing of the molecule with contributions as colours.", examples=["<svg …>"])


class Member(BaseModel):
    """A run, and its metric at the best validation epoch."""

    run: str = Field(examples=["logp-seed0"])
    seed: int = Field(examples=[0])
    parameters: int = Field(examples=[81_153])
    validation: float | None = Field(examples=[0.21])
    test: float | None = Field(examples=[0.22])


class Data(BaseModel):
    """What the runs were trained on; counts are None where the record of the run has none."""

    name: str = Field(examples=["logp.csv"])
    smiles_column: str = Field(examples=["smiles"])
    molecules: int | None = Field(examples=[1_128])
    train: int | None = Field(examples=[902])
    validation: int | None = Field(examples=[113])
    test: int | None = Field(examples=[113])


class ServedLimits(BaseModel):
    """What a request may ask for."""

    molecules: int = Field(description="Of a request in JSON.", examples=[200])
    rows: int = Field(description="Of a CSV.", examples=[20_000])
    letters: int = Field(description="Of a SMILES.", examples=[2_000])
    atoms: int = Field(description="Of a molecule, without hydrogens.", examples=[250])
    file_bytes: int = Field(examples=[2**24])
    seconds: float = Field(description="Of one molecule.", examples=[10.0])


class ModelResponse(BaseModel):
    """The network that is served."""

    name: str = Field(description="Of the recipe.", examples=["logp"])
    targets: list[str] = Field(examples=[["logp"]])
    kind: Literal["values", "labels", "classes", "mixed"] = Field(
        description="Values in the units of the data, probabilities of labels or classes, or targets of several kinds."
    )
    metric: str = Field(examples=["mae"])
    features: list[str] = Field(
        description="Columns that the network reads beside each molecule; their values have to be given.", examples=[[]]
    )
    members: list[Member]
    data: Data
    intervals: bool = Field(description="Whether predictions have an interval.")
    level: float | None = Field(description="Share of values that lie in their interval.", examples=[0.9])
    applicability: bool = Field(description="Whether molecules are compared with those of training.")
    explanations: bool = Field(description="Whether /api/explain answers.")
    notes: list[str] = Field(description="What is undefined, and why.")
    limits: ServedLimits
    version: str = Field(description="Of ckgconv.", examples=["0.1.0"])


class Health(BaseModel):
    """That the server answers."""

    status: Literal["ok"] = "ok"


class Refusal(BaseModel):
    """Why a request was not answered, and what to do."""

    error: str = Field(examples=["The field smiles is missing: see /api/docs."])
