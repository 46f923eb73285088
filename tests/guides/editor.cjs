// The steps of two people with the page of docs/tutorial/edit-lock.md, in the Chromium of this machine:
// node editor.cjs URL PROCESS, where PROCESS is that of ifmatch
'use strict';
const assert = require('node:assert/strict');
const { chromium } = require('playwright-core');

const [, , url, proxy] = process.argv;
const SECOND = 1000;

// A window of its own, in which time passes as the test says.
async function open(browser, name) {
  const page = await (await browser.newContext()).newPage();
  await page.clock.install();
  await page.goto(`${url}/?name=${name}`);
  return page;
}

const says = (page, text) => page.getByText(text, { exact: true }).waitFor();

(async () => {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    // The tests may run as root, whom the sandbox does not take; the page is our own.
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
  try {
    const ann = await open(browser, 'Ann');
    await says(ann, 'You are editing');
    const bob = await open(browser, 'Bob');
    await says(bob, 'Ann is editing');
    const text = bob.getByRole('textbox');
    assert.equal(await text.isEditable(), false);

    await ann.getByRole('textbox').fill('Tea for two');
    await ann.getByRole('button').click();
    await says(ann, 'Saved');
    await ann.goto('about:blank');
    await says(bob, 'You are editing');
    assert.deepEqual([await text.isEditable(), await text.inputValue()], [true, 'Tea for two']);

    process.kill(Number(proxy), 'SIGTERM');
    const lost = bob.getByText('You have lost the lock. Copy your text, and load the page again', { exact: true });
    // The page asks again and again until its lease must be over.
    while (!(await lost.isVisible())) await bob.clock.fastForward(5 * SECOND);
    assert.equal(await text.isEditable(), false);
  } finally {
    await browser.close();
  }
  console.log('finished');
})().catch(error => {
  console.error(error);
  process.exitCode = 1;
});
