// The SDK for Cosmos DB in JavaScript in front of a plain file server. Usage: cosmos_files.cjs URL
"use strict";

const { CosmosClient } = require("@azure/cosmos");
const { check } = require("./checks.cjs");

const client = new CosmosClient({
  endpoint: process.argv[2],
  key: "a2V5",
  connectionPolicy: { enableEndpointDiscovery: false, retryOptions: { maxRetryAttemptCount: 0 } },
});
const orders = client.database("shop").container("orders");
const order = (id) => orders.item(id, "book");
const unchanged = (tag) => ({ accessCondition: { type: "IfMatch", condition: tag } });
const onlyNew = { accessCondition: { type: "IfNoneMatch", condition: "*" } };

async function refused(what, code, call) {
  const error = await call().then((answer) => ({ answer }), (error) => error);
  check(what, error.code, code);
}

// A file server has no POST, so a replacement that must replace nothing creates a document.
async function create(document) {
  return order(document.id).replace(document, onlyNew);
}

async function read(id) {
  const { resource, etag } = await order(id).read();
  check("the document has the tag of its answer", resource?._etag, etag);
  return resource;
}

async function changes() {
  await create({ id: "a b", kind: "book", by: "create" });
  await refused("a second creation", 412, () => create({ id: "a b", kind: "book" }));
  const first = await read("a b");
  await order("a b").replace({ ...first, by: "replace" }, unchanged(first._etag));
  const second = await read("a b");
  check("another tag", second._etag === first._etag, false);
  const stale = () => order("a b").replace({ ...first, by: "stale" }, unchanged(first._etag));
  await refused("a stale change", 412, stale);
  check("it changed nothing", (await read("a b")).by, "replace");
  return [first, second];
}

// A write without a condition overwrites, and one who presents a tag sees it.
async function overwrites([first, second]) {
  await order("a b").replace({ ...first, by: "whoever" });
  await refused("a change after it", 412, () => order("a b").replace(second, unchanged(second._etag)));
}

// Eight writers raise a counter: read, change, and repeat on 412.
async function counts() {
  await create({ id: "count", kind: "book", value: 0 });
  const add = async () => {
    for (;;) {
      const { resource } = await order("count").read();
      const changed = { ...resource, value: resource.value + 1 };
      const added = await order("count").replace(changed, unchanged(resource._etag)).catch((error) => error);
      if (added.code !== 412) return added;
    }
  };
  const writer = async () => { for (let time = 0; time < 5; time += 1) await add(); };
  await Promise.all(Array.from({ length: 8 }, writer));
  check("no increment is lost", (await read("count")).value, 40);
}

async function deletions([first]) {
  await refused("a stale deletion", 412, () => order("a b").delete(unchanged(first._etag)));
  await order("a b").delete(unchanged((await read("a b"))._etag));
  check("it is gone", (await order("a b").read()).statusCode, 404);
}

// Create and Upsert are a POST to the documents, for which the file has no route.
async function creations() {
  await refused("Create Document", 404, () => orders.items.create({ id: "new", kind: "book" }));
  await refused("Upsert Document", 404, () => orders.items.upsert({ id: "new", kind: "book" }));
}

changes()
  .then(async (states) => { await overwrites(states); await counts(); await deletions(states); await creations(); })
  .then(() => console.log("finished"))
  .catch((error) => {
    console.log(`FAILED ${error.message}`);
    process.exit(1);
  });
