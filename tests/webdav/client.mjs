// The webdav package of npm, while another client edits the same file. Usage: client.mjs PACKAGE URL
import { strictEqual } from "node:assert";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [directory, url] = process.argv.slice(2);
const { createClient } = await import(pathToFileURL(join(directory, "dist/node/index.js")));
const [client, other] = [createClient(url), createClient(url)];
const file = "/plan & notes.txt";
const read = () => client.getFileContents(file, { format: "text" });
const refused = async (status, call) => strictEqual(await call().then(() => "done", (error) => error.status), status);

await client.putFileContents(file, "one");
const lock = await client.lock(file);
const holding = { headers: { If: `(<${lock.token}>)` } };
await refused(423, () => other.lock(file));
await refused(423, () => other.putFileContents(file, "of another"));
await refused(423, () => other.deleteFile(file));
await refused(423, () => other.moveFile(file, "/elsewhere.txt"));
await other.putFileContents("/other.txt", "of another");
await refused(423, () => other.copyFile("/other.txt", file));
await client.putFileContents(file, "two", holding);
await client.unlock(file, lock.token);
strictEqual(await read(), "two");
await other.copyFile("/other.txt", file);
strictEqual(await read(), "of another");

const { headers } = await client.getFileContents(file, { format: "text", details: true });
await other.putFileContents(file, "three, of another");
await refused(412, () => client.putFileContents(file, "four", { headers: { "If-Match": headers.etag } }));
strictEqual(await read(), "three, of another");
strictEqual((await client.getDirectoryContents("/")).length, 2);
console.log("finished");
