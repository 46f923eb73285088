// Serves the page, and keeps notes in memory. It knows nothing of tags and leases: node server.mjs PORT [ADDRESS]
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const PAGE = { '/': ['index.html', 'text/html'], '/main.js': ['dist/main.js', 'text/javascript'] };
const notes = new Map([['shopping', 'milk'], ['plan', 'Tea at four']]);

async function answer(request) {
  const { pathname } = new URL(request.url, 'http://localhost');
  const page = PAGE[pathname];
  if (page) return [200, await readFile(new URL(page[0], import.meta.url)), page[1]];
  if (pathname === '/notes') return [200, JSON.stringify([...notes.keys()].sort()), 'application/json'];
  if (pathname.startsWith('/editors/')) return [200, '', 'text/plain'];
  if (!pathname.startsWith('/notes/')) return [404, '', 'text/plain'];
  const id = decodeURIComponent(pathname.slice('/notes/'.length));
  if (request.method === 'PUT') {
    const pieces = await request.toArray();
    const isNew = !notes.has(id);
    notes.set(id, Buffer.concat(pieces).toString());
    return [isNew ? 201 : 200, notes.get(id), 'text/plain'];
  }
  return notes.has(id) ? [200, notes.get(id), 'text/plain'] : [404, '', 'text/plain'];
}

createServer(async (request, response) => {
  const [status, body, kind] = await answer(request);
  response.writeHead(status, { 'Content-Type': `${kind}; charset=utf-8`, 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}).listen(Number(process.argv[2]), process.argv[3] ?? '127.0.0.1');
