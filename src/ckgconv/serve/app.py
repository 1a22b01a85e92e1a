"""The addresses of the server. Every refusal is a sentence in {"error": …}; no answer has a traceback."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import FastAPI, File, Form, Request, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from ckgconv.checks import InputError, require
from ckgconv.engine.machine import versions
from ckgconv.serve.features import values_of
from ckgconv.serve.guard import FILE_ADDRESS
from ckgconv.serve.limits import Limits
from ckgconv.serve.pool import Busy, Pool
from ckgconv.serve.schemas import (
    ExplainRequest,
    ExplainResponse,
    Health,
    ModelResponse,
    PredictRequest,
    PredictResponse,
    Refusal,
    ServedLimits,
)
from ckgconv.serve.static import StaticFile, static_files
from ckgconv.serve.table import asked_rows, read_upload, with_reasons, written
from ckgconv.serve.worker import Failed, TooSlow

DESCRIPTION = "Predictions of a trained network for molecules. A refusal is a sentence in the field `error`."
REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": Refusal, "description": description}
    for code, description in {
        413: "The request is too large.",
        422: "The request cannot be answered as it stands.",
        503: "There are too many requests at the moment.",
    }.items()
}
VERSION = versions().get("ckgconv", "unknown")
NOT_FOUND = "There is nothing at this address: see /api/docs."


def make_app(pool: Pool, about: dict[str, Any], limits: Limits) -> FastAPI:
    """The application for what a pool of workers computes; `about` is what `Network.about` returns."""
    app = FastAPI(
        title="ckgconv",
        version=VERSION,
        description=DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,  # these pages would load scripts from another host
        redoc_url=None,
        redirect_slashes=False,
    )
    model = _model(about, limits)
    _add_predictions(app, pool, model.features, limits)
    _add_tables(app, pool, model, about["columns"], limits)
    _add_explanations(app, pool, model, limits)

    @app.get("/api/model", summary="The network that is served", tags=["about"])
    def describe() -> ModelResponse:
        return model

    @app.get("/api/health", summary="Whether the server answers", tags=["about"])
    def health() -> Health:
        return Health()

    for address, file in static_files().items():
        app.add_api_route(address, _sender(file), methods=["GET", "HEAD"], include_in_schema=False)
    _add_refusals(app)
    return app


def _model(about: dict[str, Any], limits: Limits) -> ModelResponse:
    served = {name: getattr(limits, name) for name in ("molecules", "rows", "letters", "file_bytes", "seconds")}
    return ModelResponse(
        **{name: value for name, value in about.items() if name not in ("atoms", "columns")},
        limits=ServedLimits(**served, atoms=about["atoms"]),
        version=VERSION,
    )


def _add_predictions(app: FastAPI, pool: Pool, names: list[str], limits: Limits) -> None:
    @app.post("/api/predict", summary="Predict molecules", tags=["predict"], responses=REFUSALS)
    def predict(asked: PredictRequest) -> PredictResponse:
        """One row for each molecule, in order; an invalid one has a reason in place of predictions."""
        count, most = len(asked.smiles), limits.molecules
        require(count <= most, f"The request has {count:,} molecules: send at most {most:,}, or a CSV.")
        features = values_of(asked.features, names, count)
        portions = pool.rows("predict", asked.smiles, limits.request_seconds, features)
        rows = [row for portion in portions for row in portion]
        return PredictResponse(molecules=rows)  # type: ignore[arg-type]  # checked as it is built


def _add_tables(app: FastAPI, pool: Pool, model: ModelResponse, columns: list[str], limits: Limits) -> None:
    @app.post(
        FILE_ADDRESS,
        summary="Predict the molecules of a CSV",
        tags=["predict"],
        response_class=Response,
        responses={200: {"content": {"text/csv": {}}, "description": "The CSV with predictions."}, **REFUSALS},
    )
    def predict_file(
        file: Annotated[UploadFile, File(description="A CSV with a header and a column of SMILES.")],
        column: Annotated[str, Form(description="Column of the SMILES, by default as in training.")] = "",
    ) -> StreamingResponse:
        """The CSV with columns of predictions, sent while it is computed; the header X-Rows says how many rows come."""
        table = read_upload(file.file.read(), limits.rows)
        rows = asked_rows(table, column or model.data.smiles_column, model.features)
        portions = pool.rows("cells", rows.smiles, limits.file_seconds, rows.features)
        lines = written(table, columns, with_reasons(portions, rows.reasons))
        headers = {"content-disposition": 'attachment; filename="predictions.csv"', "x-rows": str(len(rows.smiles))}
        return StreamingResponse(_until_failure(lines), media_type="text/csv", headers=headers)


def _until_failure(lines: Iterator[str]) -> Iterator[str]:
    """The status is sent before the last line is computed: a failure ends the answer early, and X-Rows tells."""
    try:
        yield from lines
    except (Busy, Failed, TooSlow, InputError) as error:
        print(f"An answer ended early ({type(error).__name__}).", file=sys.stderr)


def _add_explanations(app: FastAPI, pool: Pool, model: ModelResponse, limits: Limits) -> None:
    @app.post("/api/explain", summary="Explain a prediction", tags=["explain"], responses=REFUSALS)
    def explain(asked: ExplainRequest) -> ExplainResponse:
        """What each atom adds to the prediction, and a drawing of it."""
        require(model.explanations, "Predictions of this network cannot be explained.")
        letters = len(asked.smiles)
        require(letters <= limits.letters, f"The SMILES has {letters:,} letters: give at most {limits.letters:,}.")
        target = asked.target or model.targets[0]
        require(target in model.targets, f"There is no such target: choose one of {', '.join(model.targets)}.")
        features = values_of(None if asked.features is None else [asked.features], model.features, 1)
        beside = {} if features is None else {"features": features[0]}
        place = model.targets.index(target)
        found = pool.ask(limits.seconds, "explain", smiles=asked.smiles, target=place, **beside)
        return ExplainResponse.model_validate(found)


def _sender(file: StaticFile) -> Any:
    def send(request: Request) -> Response:
        headers = {"etag": file.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.kind, headers=headers)

    return send


def _add_refusals(app: FastAPI) -> None:
    def refusal(status: int, sentence: str) -> JSONResponse:
        return JSONResponse({"error": sentence}, status)

    @app.exception_handler(InputError)
    def refused(request: Request, error: InputError) -> JSONResponse:
        return refusal(422, str(error))

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return refusal(422, _sentence(error))

    @app.exception_handler(HTTPException)
    def http(request: Request, error: HTTPException) -> JSONResponse:
        sentences = {404: NOT_FOUND, 405: "The address does not take this method: see /api/docs."}
        return refusal(
            error.status_code, sentences.get(error.status_code, "The request cannot be read: see /api/docs.")
        )

    @app.exception_handler(TooSlow)
    def slow(request: Request, error: TooSlow) -> JSONResponse:
        return refusal(422, "The molecule took too long to compute: give a smaller one.")

    @app.exception_handler(Busy)
    def busy(request: Request, error: Busy) -> JSONResponse:
        return refusal(503, "The server is busy: try again in a few seconds.")

    @app.exception_handler(Exception)
    def failed(request: Request, error: Exception) -> JSONResponse:
        return refusal(500, "The server failed, and its terminal says how: report it with the request.")


def _sentence(error: RequestValidationError) -> str:
    """The first thing that is wrong, without what was sent."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return "The body is not JSON: see /api/docs."
    place = ".".join(str(part) for part in first["loc"] if part != "body")[:80]
    says = str(first["msg"])
    what = f"The field {place}" if place else "The body"
    return f"{what} cannot be used ({says[:1].lower()}{says[1:]}): see /api/docs."
