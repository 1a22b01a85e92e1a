// The page to try a network: asks the interface of this server, and shows what it answers.
// Text of users and of the server enters the page as text, never as markup; drawings enter as images, which run nothing.

import { HEIGHT, WIDTH, closeEditor, drawnSmiles, openEditor, picture, showInEditor } from "/editor.js";

const EXAMPLE = ["CC(=O)Oc1ccccc1C(=O)O", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "CC(C)Cc1ccc(cc1)C(C)C(=O)O"];
const element = (id) => document.getElementById(id);
let model = null;
let asked = [];
let askedFeatures = null;
let chosen = null;
let stopping = null;
let address = null;

function made(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function say(id, text, bad = false) {
  element(id).textContent = text;
  element(id).classList.toggle("error", bad);
}

function shown(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(2);
  return size >= 1000 ? value.toFixed(0) : size >= 100 ? value.toFixed(1) : size >= 10 ? value.toFixed(2) : value.toFixed(3);
}

// The answer of an address; throws an error with the server's sentence.
async function ask(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer: is it still running?");
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new Error(answer.error || `The server answered with status ${response.status}.`);
}

async function post(address, values) {
  const headers = { "content-type": "application/json" };
  return (await ask(address, { method: "POST", headers, body: JSON.stringify(values) })).json();
}

function lines() {
  return element("smiles").value.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
}

// --- what is served

function mean(values) {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

function fact(name, value) {
  return made("div", {}, made("dt", { textContent: name }), made("dd", { textContent: value }));
}

function describe() {
  const { data, members, limits } = model;
  const several = members.length > 1 ? `, mean of ${members.length} runs` : "";
  document.title = `${model.name} · ckgconv`;
  element("name").textContent = model.name;
  const what = model.targets[0].startsWith("prediction") ? `the target of ${data.name}` : model.targets.join(", ");
  element("summary").textContent = `Predicts ${what}${several}.`;
  const alone = several ? " of a run alone" : "";
  const count = (number) => (number === null ? null : number.toLocaleString("en"));
  const facts = [
    ["trained on", data.molecules === null ? data.name : `${data.name}, ${count(data.train ?? data.molecules)} molecules`],
    [`validation ${model.metric}${alone}`, shown(mean(members.map((each) => each.validation)))],
    [`test ${model.metric}${alone}`, shown(mean(members.map((each) => each.test)))],
    [members.length > 1 ? "runs" : "run", members.map((each) => each.run).join(", ")],
    ["parameters", count(members.reduce((sum, each) => sum + each.parameters, 0))],
  ];
  element("facts").replaceChildren(...facts.map(([name, value]) => fact(name, value)));
  element("smiles-hint").textContent =
    `At most ${count(limits.molecules)} molecules of at most ${count(limits.atoms)} atoms. Ctrl+Enter predicts.`;
  element("table-hint").textContent =
    `At most ${count(limits.rows)} rows and ${Math.floor(limits.file_bytes / 2 ** 20)} MB. ${
      model.features.length ? `It needs the columns ${model.features.join(", ")}, with empty cells where unknown. ` : ""
    }Other columns are kept.`;
  element("column").placeholder = data.smiles_column;
}

// --- columns that the network reads beside molecules

function featureFields() {
  const fields = model.features.flatMap((name, place) => {
    const field = made("input", { id: `feature${place}`, type: "text", inputMode: "decimal", autocomplete: "off", placeholder: "unknown" });
    return [made("label", { htmlFor: field.id, textContent: `${name}, of all molecules above` }), field];
  });
  element("features").replaceChildren(...fields);
}

// By name; null where a field is empty; throws an error with a sentence for what is no number.
function featureValues() {
  if (!model.features.length) return null;
  return Object.fromEntries(model.features.map((name, place) => {
    const text = element(`feature${place}`).value.trim().replace(",", ".");
    if (text && !Number.isFinite(Number(text))) throw new Error(`${name} is no number: correct it, or leave it empty.`);
    return [name, text ? Number(text) : null];
  }));
}

// --- several molecules

function header() {
  const names = ["structure", "SMILES", ...model.targets];
  if (model.applicability) names.push("like training?");
  if (model.explanations) names.push("");
  return made("tr", {}, ...names.map((name) => made("th", { textContent: name, scope: "col" })));
}

function valueCell(each) {
  const cell = made("td", { className: "value" }, made("b", { textContent: shown(each.value) }));
  cell.dataset.label = each.target;
  const has = (value) => value !== null && value !== undefined;
  if (has(each.lower)) cell.append(made("small", { textContent: `${shown(each.lower)} to ${shown(each.upper)}` }));
  if (has(each.calibrated)) cell.append(made("small", { textContent: `calibrated ${shown(each.calibrated)}` }));
  if (has(each.deviation)) cell.append(made("small", { textContent: `± ${shown(each.deviation)}` }));
  return cell;
}

function flagCell(row) {
  const cell = made("td", {});
  if (row.outside !== null) {
    const words = row.outside ? "unlike training" : "like training";
    cell.append(made("span", { className: row.outside ? "flag outside" : "flag inside", textContent: words }));
  }
  if (row.similarity !== null) cell.append(made("small", { textContent: `similarity ${row.similarity.toFixed(2)}`, title: `nearest: ${row.nearest}` }));
  return cell;
}

function resultRow(row) {
  const image = made("img", { alt: row.reason ? "" : `Structure of ${row.smiles}`, width: WIDTH, height: HEIGHT });
  const source = row.reason ? null : picture(row.smiles);
  if (source) image.src = source;
  const name = made("td", { className: "smiles", textContent: row.smiles });
  const line = made("tr", {}, made("td", { className: "structure" }, ...(source ? [image] : [])), name);
  if (row.reason) {
    name.append(made("p", { className: "reason", textContent: row.reason }));
    name.colSpan = 1 + model.targets.length + model.applicability + model.explanations;
    return line;
  }
  line.append(...row.predictions.map(valueCell));
  if (model.applicability) line.append(flagCell(row));
  if (model.explanations) {
    const button = made("button", { type: "button", textContent: "Explain" });
    button.setAttribute("aria-label", `Explain ${row.smiles}`);
    button.addEventListener("click", () => explain(row.smiles));
    line.append(made("td", {}, button));
  }
  return line;
}

function legend() {
  const words = [];
  if (model.intervals) {
    words.push(`Below a value: the interval in which ${Math.round(100 * model.level)} % of the values of molecules like those of training lie.`);
  }
  if (model.members.length > 1) words.push("± is the standard deviation between the runs.");
  if (model.kind === "mixed") words.push("Of labels and classes, values are probabilities.");
  else if (model.kind !== "values") words.push("Values are probabilities.");
  if (model.applicability) words.push("Similarity is that to the nearest molecule of training, from 0 to 1; “like training” means no lower than that of nearly all training molecules to each other.");
  return [...words, ...model.notes].join(" ");
}

async function predict(event) {
  event.preventDefault();
  const smiles = lines();
  if (!smiles.length) {
    element("results").hidden = false;
    say("status", "Type a SMILES, or draw a molecule.", true);
    element("smiles").focus();
    return;
  }
  element("predict").disabled = true;
  element("results").hidden = false;
  say("status", "Computing…");
  try {
    const features = featureValues();
    const { molecules } = await post("/api/predict", { smiles, features: features && [features] });
    const refused = molecules.filter((row) => row.reason).length;
    [asked, askedFeatures] = [smiles, features];
    element("rows").tHead.replaceChildren(header());
    element("rows").tBodies[0].replaceChildren(...molecules.map(resultRow));
    say("status", refused ? `${molecules.length - refused} of ${molecules.length} molecules predicted.` : "");
    element("legend").textContent = legend();
    element("explanation").hidden = true;
    const first = molecules.find((row) => !row.reason);
    if (model.explanations && molecules.length === 1 && first) await explain(first.smiles, false);
  } catch (error) {
    say("status", error.message, true);
  } finally {
    element("predict").disabled = false;
  }
}

async function explain(smiles, focus = true) {
  chosen = smiles;
  element("explanation").hidden = false;
  element("target-label").hidden = model.targets.length < 2;
  say("explained", "Computing…");
  if (focus) element("why").focus();
  try {
    const target = element("target").value || null;
    const found = await post("/api/explain", { smiles, target, features: askedFeatures });
    element("picture").src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(found.svg)}`;
    element("picture").alt = `${smiles} with what each atom adds to ${found.target}`;
    const than = `${shown(found.prediction)}, and ${shown(found.baseline)} at the baseline`;
    const beside = Object.entries(found.features).map(([name, value]) => `${name} adds ${shown(value)}.`).join(" ");
    element("method").textContent = `Red raises the prediction, blue lowers it. ${beside} ${found.sentence}`;
    say("explained", `${found.unit} of ${smiles}: ${than}`);
  } catch (error) {
    element("picture").removeAttribute("src");
    element("method").textContent = "";
    say("explained", error.message, true);
  }
}

// --- a table

// The text of an answer; `tick` hears of the lines so far.
async function streamed(response, tick) {
  const reader = response.body.getReader();
  const parts = [];
  let count = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { blob: new Blob(parts, { type: "text/csv" }), count };
    parts.push(value);
    for (const byte of value) count += byte === 10;
    tick(count);
  }
}

function offer(link, blob) {
  if (address) URL.revokeObjectURL(address);
  address = URL.createObjectURL(blob);
  link.href = address;
}

async function predictTable(event) {
  event.preventDefault();
  const file = element("file").files[0];
  if (!file) return say("table-status", "Choose a CSV first.", true);
  if (file.size > model.limits.file_bytes) return say("table-status", "The file is too large: send it in parts.", true);
  const form = new FormData();
  form.append("file", file, "upload.csv");
  form.append("column", element("column").value.trim());
  stopping = new AbortController();
  element("download").hidden = true;
  element("stop").hidden = element("progress").hidden = false;
  element("predict-file").disabled = true;
  element("progress").removeAttribute("value");
  say("table-status", "Sending…");
  try {
    const response = await ask("/api/predict-file", { method: "POST", body: form, signal: stopping.signal });
    const rows = Number(response.headers.get("x-rows"));
    element("progress").max = rows;
    const { blob, count } = await streamed(response, (seen) => {
      element("progress").value = Math.max(0, seen - 1);
      say("table-status", `${Math.max(0, seen - 1).toLocaleString("en")} of ${rows.toLocaleString("en")} rows`);
    });
    if (count - 1 < rows) throw new Error(`The answer ended after ${count - 1} of ${rows} rows: send the table again.`);
    offer(element("download"), blob);
    element("download").hidden = false;
    say("table-status", `${rows.toLocaleString("en")} rows are ready.`);
  } catch (error) {
    say("table-status", error.name === "AbortError" ? "Stopped." : error.message, error.name !== "AbortError");
  } finally {
    element("stop").hidden = element("progress").hidden = true;
    element("predict-file").disabled = false;
  }
}

// The molecules of the list as a CSV, written by the server as that of a table.
async function save() {
  const quoted = (text) => `"${String(text ?? "").replaceAll('"', '""')}"`;
  const line = (first, cells) => [first, ...cells].map(quoted).join(",");
  const values = Object.values(askedFeatures ?? {});
  const text = [line("smiles", model.features), ...asked.map((smiles) => line(smiles, values))].join("\n") + "\n";
  const form = new FormData();
  form.append("file", new Blob([text]), "upload.csv");
  form.append("column", "smiles");
  try {
    const { blob } = await streamed(await ask("/api/predict-file", { method: "POST", body: form }), () => {});
    const link = made("a", { download: "predictions.csv" });
    offer(link, blob);
    link.click();
  } catch (error) {
    say("status", error.message, true);
  }
}

// --- drawing

function toggleDrawing() {
  const open = element("drawing").hidden;
  element("drawing").hidden = !open;
  element("draw").setAttribute("aria-expanded", String(open));
  if (!open) return closeEditor();
  openEditor(element("editor"), () => {
    const smiles = drawnSmiles();
    element("drawn").textContent = smiles || "nothing drawn yet";
    element("take").disabled = !smiles;
  });
}

function take() {
  const smiles = drawnSmiles();
  if (!smiles) return;
  element("smiles").value = [...lines(), smiles].join("\n") + "\n";
  element("predict").focus();
}

function edit() {
  const last = lines().at(-1);
  if (!last || !showInEditor(last)) element("drawn").textContent = "The last line of the list cannot be drawn.";
}

element("molecules").addEventListener("submit", predict);
element("table").addEventListener("submit", predictTable);
element("stop").addEventListener("click", () => stopping && stopping.abort());
element("save").addEventListener("click", save);
element("draw").addEventListener("click", toggleDrawing);
element("take").addEventListener("click", take);
element("edit").addEventListener("click", edit);
element("target").addEventListener("change", () => chosen && explain(chosen));
element("example").addEventListener("click", () => { element("smiles").value = EXAMPLE.join("\n") + "\n"; element("predict").focus(); });
element("clear").addEventListener("click", () => { element("smiles").value = ""; element("smiles").focus(); });
element("smiles").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) element("molecules").requestSubmit();
});

try {
  model = await (await ask("/api/model")).json();
  element("target").replaceChildren(...model.targets.map((name) => made("option", { value: name, textContent: name })));
  describe();
  featureFields();
  document.documentElement.dataset.ready = "yes";
} catch (error) {
  say("summary", error.message, true);
  element("predict").disabled = element("predict-file").disabled = true;
}
