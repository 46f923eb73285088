// The steps of people in pages that write through the package of clients/typescript, in the Chromium of this machine:
//
//   node browser.cjs edit PAGE     two people edit the same document
//   node browser.cjs wait PAGE     a writer meets another write that is under way, without and with patience
//   node browser.cjs lease PAGE ID a writer who has a lease
//   node browser.cjs hold PAGE     two people who hold a lease, one after the other
//
// It says what each page was told, and "finished" at its end.
'use strict';
const { chromium } = require('playwright-core');

const [, , word, page, argument] = process.argv;

const stories = {
  async edit(open) {
    const [ann, ben] = [await open('Ann'), await open('Ben')];
    await ann('write', { method: 'PUT', body: 'unread' });
    await ann('read');
    await ben('read');
    await ann('write', { method: 'PUT', body: 'by Ann' });
    await ben('write', { method: 'PUT', body: 'by Ben' });
    await ben('write', { method: 'PUT', body: 'blindly' });
    await ben('write', { method: 'PUT', body: 'by both' }, 'on what is there now');
    await ben('write', { method: 'PUT', body: 'once more' });
    await ann('write', { method: 'DELETE' });
    await ann('write', { method: 'PUT', body: 'new', create: true });
    await ann('read');
    await ann('write', { method: 'DELETE' });
    await ben('write', { method: 'PUT', body: 'too late' });
    await ann('write', { method: 'PUT', body: 'gone' });
    await ann('write', { method: 'PUT', body: 'new', create: true });
  },
  async wait(open) {
    for (const [name, wait] of [['hurried', 0], ['patient', 30_000]]) {
      const writer = await open(name, wait);
      await writer('read');
      await writer('write', { method: 'PUT', body: `by the ${name}` });
    }
  },
  async lease(open) {
    const [holder, other] = [await open('holder'), await open('other')];
    await other('read');
    await other('write', { method: 'PUT', body: 'by the other' });
    await holder('write', { method: 'PUT', body: 'by the holder', headers: { 'Lease-Id': argument } });
  },
  async hold(open) {
    const ann = await open('Ann');
    await ann('hold', 'Ann');
    await ann('save', 'by Ann');
    const ben = await open('Ben');
    const turn = ben('hold', 'Ben');
    await ben.tab.waitForFunction(() => window.waits === 'Ann');
    // Nothing that Ann has told of is lost with her connection, if she comes back in time.
    await ann.tab.context().setOffline(true);
    await ann.tab.context().setOffline(false);
    await ann('save', 'by Ann again');
    await ann.tab.close();
    await turn;
    await ben('save', 'by Ben');
    await ben('breakLease');
    await ben.tab.waitForFunction(() => window.lost !== undefined);
    console.log(`Ben: lost: ${await ben.tab.evaluate(() => window.lost)}`);
  },
};

(async () => {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    // The tests may run as root, whom the sandbox does not take; the page is our own.
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
  /** Opens the page in a profile of its own; gives back what calls its functions. */
  async function open(name, wait) {
    const tab = await (await browser.newContext()).newPage();
    await tab.goto(wait === undefined ? page : `${page}&wait=${wait}`);
    await tab.waitForFunction(() => window.write !== undefined);
    const act = async (call, init, onCurrent) => {
      const run = ([call, init, onCurrent]) => {
        const base = onCurrent ? window.conflict.current : undefined;
        return window[call](typeof init === 'string' ? init : { ...init, base });
      };
      console.log(`${name}: ${await tab.evaluate(run, [call, init, onCurrent])}`);
    };
    return Object.assign(act, { tab });
  }
  try {
    await stories[word](open);
  } finally {
    await browser.close();
  }
  console.log('finished');
})().catch(error => {
  console.error(error);
  process.exitCode = 1;
});
