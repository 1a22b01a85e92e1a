// The interface as a page, from the server's own openapi.json: what each address takes and gives, with an example.

const made = (tag, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
};
const schemaAt = (whole, schema) => (schema.$ref ? whole.components.schemas[schema.$ref.split("/").at(-1)] : schema);

// A value that fits a schema.
function example(whole, given) {
  const schema = schemaAt(whole, given);
  if (schema.examples) return schema.examples[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return example(whole, schema.anyOf[0]);
  if (schema.type === "array") return [example(whole, schema.items)];
  if (schema.properties) {
    return Object.fromEntries(Object.entries(schema.properties).map(([name, value]) => [name, example(whole, value)]));
  }
  return { string: "", integer: 0, number: 0, boolean: true }[schema.type] ?? null;
}

function fields(whole, given) {
  const schema = schemaAt(whole, given);
  const list = made("ul");
  for (const [name, value] of Object.entries(schema.properties ?? {})) {
    const says = value.description ?? schemaAt(whole, value.items ?? value).description ?? "";
    list.append(made("li", {}, made("code", { textContent: name }), says ? `: ${says}` : ""));
  }
  return list;
}

function body(whole, title, content) {
  const [kind, { schema = {} }] = Object.entries(content)[0];
  const part = made("div", {}, made("p", {}, made("b", { textContent: title }), ` ${kind}`));
  if (kind === "application/json") {
    part.append(fields(whole, schema), made("pre", { textContent: JSON.stringify(example(whole, schema), null, 1) }));
  } else if (schema.$ref) {
    part.append(fields(whole, schema));
  }
  return part;
}

function operation(whole, address, method, value) {
  const name = made("h2", {}, made("span", { className: "method", textContent: method.toUpperCase() }), " ", made("code", { textContent: address }));
  const section = made("section", { className: "operation" }, name, made("p", { textContent: value.summary }));
  if (value.description) section.append(made("p", { className: "quiet", textContent: value.description }));
  if (value.requestBody) section.append(body(whole, "Takes", value.requestBody.content));
  for (const [status, answer] of Object.entries(value.responses)) {
    if (status === "200" && answer.content) section.append(body(whole, "Gives", answer.content));
    else section.append(made("p", { className: "quiet", textContent: `${status}: ${answer.description}` }));
  }
  return section;
}

const whole = await (await fetch("/api/openapi.json")).json();
for (const [address, methods] of Object.entries(whole.paths)) {
  for (const [method, value] of Object.entries(methods)) {
    document.getElementById("operations").append(operation(whole, address, method, value));
  }
}
