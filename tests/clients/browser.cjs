// What people do in pages that write through docs/clients/ifmatch.js, in the Chromium of this machine:
//
//   node browser.cjs edit PAGE     two people edit the same document
//   node browser.cjs wait PAGE     a writer meets another write that is under way, without and with patience
//   node browser.cjs lease PAGE ID a writer who has a lease
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
    return async (call, init, onCurrent) => {
      const run = ([call, init, onCurrent]) => {
        const base = onCurrent ? window.conflict.current : undefined;
        return window[call]({ ...init, base });
      };
      console.log(`${name}: ${await tab.evaluate(run, [call, init, onCurrent])}`);
    };
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
