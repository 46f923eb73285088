// Tells what Node's own parser reads. Usage: node server.cjs HOST PORT
const http = require("http");
const [host, port] = process.argv.slice(2);
const server = http.createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    const raw = request.rawHeaders;
    const fields = [];
    for (let at = 0; at < raw.length; at += 2) fields.push([raw[at], raw[at + 1]]);
    const body = Buffer.concat(pieces).toString("latin1");
    const told = JSON.stringify({ method: request.method, target: request.url, fields, body });
    response.end(Buffer.from(told));
  });
});
server.keepAliveTimeout = 600000;
server.listen(Number(port), host);
