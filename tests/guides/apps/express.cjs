// Notes in Express with its defaults, as its users write them. Usage: node express.cjs PACKAGES HOST PORT
const [packages, host, port] = process.argv.slice(2);
const express = require(packages + "/express");

const notes = new Map();
const app = express();
app.use(express.json());
app.get("/notes/:id", (request, response) => {
  const note = notes.get(request.params.id);
  if (note === undefined) return response.status(404).json({ error: "no such note" });
  return response.json(note);
});
app.put("/notes/:id", (request, response) => {
  notes.set(request.params.id, request.body);
  response.json({ saved: true });
});
app.delete("/notes/:id", (request, response) => {
  notes.delete(request.params.id);
  response.sendStatus(204);
});
app.listen(Number(port), host);
