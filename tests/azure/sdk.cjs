// All that the SDK for JavaScript does with blobs in front of a plain server. Usage: sdk.cjs URL [ACCOUNT KEY]
"use strict";

const { strictEqual } = require("node:assert");
const { createHash, randomUUID } = require("node:crypto");
const { Readable } = require("node:stream");
const { AnonymousCredential, BlobServiceClient, StorageSharedKeyCredential } = require("@azure/storage-blob");
const { check, refused } = require("./checks.cjs");

const [url, account, key] = process.argv.slice(2);
const credential = account ? new StorageSharedKeyCredential(account, key) : new AnonymousCredential();
const service = new BlobServiceClient(url, credential, { retryOptions: { maxTries: 1 } });
const container = service.getContainerClient("documents");
const blob = container.getBlockBlobClient("folder/from javascript.txt");

const md5 = (text) => createHash("md5").update(text).digest();

async function upload(body, options, to = blob) {
  const answer = await to.upload(body, body.length, options);
  strictEqual(typeof answer.etag, "string");
  strictEqual(Buffer.from(answer.contentMD5).equals(md5(body)), true);
  return answer.etag;
}

async function text(...range) {
  const answer = await blob.download(...range);
  const pieces = [];
  for await (const piece of answer.readableStreamBody) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

// A copy is made when it is answered.
async function copies() {
  const source = container.getBlockBlobClient("source.txt");
  const target = container.getBlockBlobClient("target.txt");
  const etag = await upload("copied", {}, source);
  const made = await (await target.beginCopyFromURL(source.url)).pollUntilDone();
  check("a copy is made", [made.copyStatus, (await target.downloadToBuffer()).toString()], ["success", "copied"]);
  await target.syncCopyFromURL(source.url, { sourceConditions: { ifMatch: etag } });
  const checked = await target.syncCopyFromURL(source.url, { sourceContentMD5: md5("copied") });
  check("a copy of what the client knows", Buffer.from(checked.contentMD5), md5("copied"));
  const damaged = () => target.syncCopyFromURL(source.url, { sourceContentMD5: md5("other") });
  await refused("a copy of anything else", 400, "Md5Mismatch", damaged);
  const stale = () => target.syncCopyFromURL(source.url, { sourceConditions: { ifMatch: '"stale"' } });
  await refused("a copy of a source that has changed", 412, "SourceConditionNotMet", stale);
  const moved = () => target.syncCopyFromURL(source.url, { conditions: { ifMatch: '"stale"' } });
  await refused("a copy onto a target that has changed", 412, "ConditionNotMet", moved);
  await source.delete();
  await target.delete();
}

async function state() {
  return (await blob.getProperties()).leaseState;
}

const holding = (leaseId) => ({ conditions: { leaseId } });
const unchanged = (ifMatch, leaseId) => ({ conditions: { ifMatch, leaseId } });

async function contents() {
  await container.create();
  await refused("to read what is not there", 404, "BlobNotFound", () => blob.download());
  const first = await upload("0123456789", { conditions: { ifNoneMatch: "*" } });
  const create = () => upload("other", { conditions: { ifNoneMatch: "*" } });
  await refused("to create what is there", 409, "BlobAlreadyExists", create);
  const properties = await blob.getProperties();
  check("the tag of the upload is that of the properties", properties.etag, first);
  await blob.setHTTPHeaders({ blobContentType: "text/x", blobContentLanguage: "de" }, unchanged(first));
  const { contentType, contentLanguage, etag } = await blob.getProperties();
  check("properties are set", [contentType, contentLanguage], ["text/x", "de"]);
  check("the length of the upload", properties.contentLength, 10);
  check("the date of the upload", properties.lastModified instanceof Date, true);
  check("all of it is downloaded", await text(), "0123456789");
  check("from its beginning", await text(0), "0123456789");
  check("a range is downloaded", await text(2, 3), "234");
  check("an open range is downloaded", await text(7), "789");
  const empty = container.getBlockBlobClient("empty from javascript");
  await upload("", {}, empty);
  check("an empty blob is downloaded", (await empty.downloadToBuffer()).length, 0);

  const named = container.getBlockBlobClient("ü ñ/a+b&c=d'e(f) 100%.txt");
  await upload("named", {}, named);
  check("a name is kept", (await named.downloadToBuffer()).toString(), "named");
  await blocks();

  const second = await upload("second", unchanged(etag));
  await refused("a stale write", 412, "ConditionNotMet", () => upload("stale", unchanged(first)));
  await refused("a stale deletion", 412, "ConditionNotMet", () => blob.delete(unchanged(first)));
  check("nothing else was written", await text(), "second");
  return second;
}

// A stream of unknown length is always uploaded in blocks.
async function blocks() {
  const streamed = container.getBlockBlobClient("streamed from javascript");
  const pieces = Array.from({ length: 40 }, (_, number) => Buffer.alloc(100_000, number));
  const stream = () => Readable.from(pieces);
  const once = { conditions: { ifNoneMatch: "*" } };
  const tag = (await streamed.uploadStream(stream(), 256 * 1024, 4, once)).etag;
  check("a stream is uploaded in blocks", (await streamed.downloadToBuffer()).equals(Buffer.concat(pieces)), true);
  check("the tag of the upload is that of the blob", (await streamed.getProperties()).etag, tag);
  const again = () => streamed.uploadStream(stream(), 256 * 1024, 4, once);
  await refused("to create what is there in blocks", 409, "BlobAlreadyExists", again);
  const lists = await streamed.getBlockList("all");
  check("the blocks of the refused list stay", [lists.committedBlocks.length, lists.uncommittedBlocks.length], [0, 16]);
  await streamed.uploadStream(Readable.from(["short"]), 256 * 1024, 4, unchanged(tag));
  check("a list replaces the blob", (await streamed.downloadToBuffer()).toString(), "short");
  const stale = () => streamed.uploadStream(stream(), 256 * 1024, 4, unchanged(tag));
  await refused("a stale write in blocks", 412, "ConditionNotMet", stale);
  await streamed.delete();
}

async function lists() {
  const [inFolder, above] = ["list/a/ü b.txt", "list/a-b.txt"];
  for (const name of [inFolder, above]) await upload("listed", {}, container.getBlockBlobClient(name));
  const flat = [];
  for await (const { name, properties } of container.listBlobsFlat({ prefix: "list/" })) {
    flat.push([name, properties.contentLength, properties.blobType, properties.lastModified instanceof Date]);
  }
  check("a flat list", flat, [above, inFolder].map((name) => [name, 6, "BlockBlob", true]));
  const level = [];
  for await (const item of container.listBlobsByHierarchy("/", { prefix: "list/" })) level.push([item.kind, item.name]);
  level.sort();
  check("a list of one level", level, [["blob", above], ["prefix", "list/a/"]]);
  const pages = [];
  for await (const page of container.listBlobsFlat({ prefix: "list/" }).byPage({ maxPageSize: 1 })) {
    pages.push(page.segment.blobItems.map((item) => item.name));
  }
  check("a list in pages", pages, [[above], [inFolder]]);
}

async function lease(tag) {
  const lease = blob.getBlobLeaseClient();
  await lease.acquireLease(15);
  const { leaseState, leaseStatus, leaseDuration, etag } = await blob.getProperties();
  check("a lease", [leaseState, leaseStatus, leaseDuration, etag], ["leased", "locked", "fixed", tag]);
  await refused("a write without it", 412, "LeaseIdMissing", () => upload("none"));
  const mismatch = "LeaseIdMismatchWithBlobOperation";
  await refused("a write with another", 412, mismatch, () => upload("wrong", holding(randomUUID())));
  const third = await upload("third", holding(lease.leaseId));
  const stale = () => upload("stale", unchanged(tag, lease.leaseId));
  await refused("a stale write with it", 412, "ConditionNotMet", stale);
  await upload("fourth", unchanged(third, lease.leaseId));
  check("a write with it", await text(), "fourth");
  const second = blob.getBlobLeaseClient();
  await refused("a second one", 409, "LeaseAlreadyPresent", () => second.acquireLease(15));
  await lease.acquireLease(15);
  await lease.renewLease();
  check("it is renewed", await state(), "leased");
  const [old, proposed] = [lease.leaseId, randomUUID()];
  await lease.changeLease(proposed);
  check("it is changed", lease.leaseId, proposed);
  await refused("a write with its old id", 412, mismatch, () => upload("old", holding(old)));
  await upload("fifth", holding(proposed));
  check("a write with its new id", await text(), "fifth");
  return lease;
}

async function end(lease) {
  check("it is broken in a second", (await lease.breakLease(1)).leaseTime <= 1, true);
  check("it is breaking", await state(), "breaking");
  await refused("to renew it", 409, "LeaseIsBrokenAndCannotBeRenewed", () => lease.renewLease());
  const last = Date.now() + 10_000;
  while ((await state()) === "breaking" && Date.now() < last) await new Promise((wake) => setTimeout(wake, 100));
  check("it is broken", await state(), "broken");
  const next = blob.getBlobLeaseClient();
  await next.acquireLease(-1);
  check("one without an end", (await blob.getProperties()).leaseDuration, "infinite");
  await next.releaseLease();
  check("it is released", await state(), "available");
  await refused("to release it again", 409, "LeaseIdMismatchWithLeaseOperation", () => next.releaseLease());
  await upload("sixth");
  await next.acquireLease(15);
  await refused("to delete it without its lease", 412, "LeaseIdMissing", () => blob.delete());
  await blob.delete(holding(next.leaseId));
  check("it is gone", await blob.exists(), false);
  check("it cannot be deleted twice", (await blob.deleteIfExists()).succeeded, false);
  check("the container is there", await container.exists(), true);
  await container.delete();
  check("and gone", await container.exists(), false);
}

contents().then(async (tag) => { await lists(); await copies(); return tag; }).then(lease).then(end).then(() => console.log("finished")).catch((error) => {
  console.log(`FAILED ${error.message}`);
  process.exit(1);
});
