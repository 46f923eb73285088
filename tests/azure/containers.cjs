// Containers, as the SDK for JavaScript uses them. Usage: containers.cjs URL
"use strict";

const { AnonymousCredential, BlobServiceClient } = require("@azure/storage-blob");
const { check, refused } = require("./checks.cjs");

const service = new BlobServiceClient(process.argv[2], new AnonymousCredential(), { retryOptions: { maxTries: 1 } });

async function main() {
  const container = service.getContainerClient("scripts");
  const created = await container.create({ metadata: { owner: "alice" } });
  const read = await container.getProperties();
  check("its tag and metadata", [read.etag, read.metadata], [created.etag, { owner: "alice" }]);
  const since = new Date(Date.now() + 3_600_000);
  const unchanged = () => container.setMetadata({ owner: "bob" }, { conditions: { ifModifiedSince: since } });
  await refused("metadata of what has not changed", 412, "ConditionNotMet", unchanged);
  const set = await container.setMetadata({ owner: "bob" });
  const listed = [];
  for await (const item of service.listContainers({ includeMetadata: true, prefix: "scr" })) listed.push(item);
  const shown = listed.map(({ name, metadata, properties }) => [name, metadata, properties.etag]);
  check("the list", shown, [["scripts", { owner: "bob" }, set.etag]]);
  check("its date", listed[0].properties.lastModified instanceof Date, true);
  await container.delete();
  await refused("what is gone", 404, "ContainerNotFound", () => container.getProperties());
  console.log("finished");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
