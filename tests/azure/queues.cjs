// All that the SDK for JavaScript does with queues in front of a plain server. Usage: queues.cjs URL
"use strict";

const { AnonymousCredential, QueueServiceClient } = require("@azure/storage-queue");
const { check, refused } = require("./checks.cjs");

const [url] = process.argv.slice(2);
// The SDK looks for an account in the path behind an IP address.
const service = new QueueServiceClient(`${url}/account`, new AnonymousCredential(), { retryOptions: { maxTries: 1 } });
const queue = service.getQueueClient("from-javascript");

const texts = (list) => list.map(({ messageText }) => messageText);
const peeked = async () => texts((await queue.peekMessages({ numberOfMessages: 32 })).peekedMessageItems);
const taken = async (options) => (await queue.receiveMessages(options)).receivedMessageItems;

async function queues() {
  await refused("no queue", 404, "QueueNotFound", () => queue.getProperties());
  check("it is created", (await queue.createIfNotExists({ metadata: { owner: "ann" } })).succeeded, true);
  check("and is there", (await queue.createIfNotExists()).succeeded, false);
  check("its metadata", (await queue.getProperties()).metadata, { owner: "ann" });
  await queue.setMetadata({ owner: "bob" });
  const listed = [];
  for await (const { name, metadata } of service.listQueues({ prefix: "from", includeMetadata: true })) {
    listed.push([name, metadata.owner]);
  }
  check("a list", listed, [["from-javascript", "bob"]]);
  await refused("policies", 501, "NotImplemented", () => queue.getAccessPolicy());
}

async function messages() {
  check("nothing to take", await taken(), []);
  const strange = " <a>&amp;]]> ä€😀 ";
  const put = await queue.sendMessage(strange);
  await queue.sendMessage("two");
  check("a look", await peeked(), [strange, "two"]);
  check("how many there are", (await queue.getProperties()).approximateMessagesCount, 2);
  const [first, second] = await taken({ numberOfMessages: 32, visibilityTimeout: 60 });
  check("both", [first.messageId, first.messageText, first.dequeueCount, second.messageText], [put.messageId, strange, 1, "two"]);
  check("they are hidden", await peeked(), []);
  const updated = await queue.updateMessage(first.messageId, first.popReceipt, "half done", 0);
  const stale = () => queue.deleteMessage(first.messageId, first.popReceipt);
  await refused("the receipt before", 400, "PopReceiptMismatch", stale);
  const [again] = await taken();
  check("it is taken again", [again.messageText, again.dequeueCount], ["half done", 2]);
  await refused("that of the update", 400, "PopReceiptMismatch", () => queue.deleteMessage(again.messageId, updated.popReceipt));
  await queue.deleteMessage(again.messageId, again.popReceipt);
  await refused("it is gone", 404, "MessageNotFound", () => queue.deleteMessage(again.messageId, again.popReceipt));
  await queue.clearMessages();
  check("all are", (await queue.getProperties()).approximateMessagesCount, 0);
}

async function main() {
  await queues();
  await messages();
  check("it is deleted", (await queue.deleteIfExists()).succeeded, true);
  check("once", (await queue.deleteIfExists()).succeeded, false);
  console.log("finished");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
