// Documents as applications of Express and Fastify keep them.
// Usage: node documents.cjs express|fastify HOST PORT MODULES
//
// /docs/ID and /document?doc_id=ID are one document. A POST to /docs names it in its body: the member or parameter `sku`.
// The one of Express keeps documents without regard to case, as a database with such a collation does.
const [kind, host, port, modules] = process.argv.slice(2);
const load = (name) => require(`${modules}/${name}`);
const documents = new Map();

function act(method, name, body) {
  if (typeof name !== "string") return [404, ""];
  if (method === "GET" || method === "HEAD") return documents.has(name) ? [200, documents.get(name)] : [404, ""];
  if (method === "DELETE") return [documents.delete(name) ? 204 : 404, ""];
  if (method !== "OPTIONS") documents.set(name, body);
  return [204, ""];
}

const named = (sent) => (sent && sent.sku !== undefined ? String(sent.sku) : undefined);

function express() {
  const app = load("express")();
  app.set("query parser", "extended");
  app.use(load("method-override")("X-HTTP-Method-Override"));
  app.use(load("method-override")("_method"));
  const text = load("express").text({ type: () => true });
  const answer = (request, response, name, body) => {
    const folded = typeof name === "string" ? name.toLowerCase() : name;
    const [status, told] = act(request.method, folded, typeof body === "string" ? body : "");
    response.status(status).type("text/plain").send(told);
  };
  app.all("/docs/:name", text, (request, response) => answer(request, response, request.params.name, request.body));
  app.all("/document", text, (request, response) => answer(request, response, request.query.doc_id, request.body));
  const parsers = [load("express").json(), load("express").urlencoded({ extended: true })];
  app.post("/docs", parsers, (request, response) => answer(request, response, named(request.body), String(request.body && request.body.v)));
  app.use((error, request, response, next) => response.status(400).end());
  app.listen(Number(port), host);
}

function fastify() {
  const app = load("fastify")({ ignoreTrailingSlash: true });
  app.addContentTypeParser("*", { parseAs: "string" }, (request, body, done) => done(null, body));
  app.addContentTypeParser("application/x-www-form-urlencoded", { parseAs: "string" }, (request, body, done) =>
    done(null, Object.fromEntries(new URLSearchParams(body))));
  const answer = (request, reply, name, body) => {
    const [status, told] = act(request.method, name, typeof body === "string" ? body : JSON.stringify(body));
    reply.code(status).type("text/plain").send(told);
  };
  app.all("/docs/:name", (request, reply) => answer(request, reply, request.params.name, request.body));
  app.all("/document", (request, reply) => answer(request, reply, request.query.doc_id, request.body));
  app.post("/docs", (request, reply) => answer(request, reply, named(request.body), String(request.body && request.body.v)));
  app.listen({ port: Number(port), host });
}

({ express, fastify })[kind]();
