// What a person does in the console, in the Chromium of this machine. Each word of the command line is one visit:
//
//   node console.cjs URL break KEY     breaks a lease, and waits until it is gone
//   node console.cjs URL keep KEY      asks for it, and decides otherwise
//   node console.cjs URL see TEXT      waits until a text is shown
//   node console.cjs URL login TOKEN   gives a token first, then waits for a lease
//   node console.cjs URL rebound       opens the same listener under a name of its own
//
// It says what it saw, and "finished" at its end.
'use strict';
const assert = require('node:assert/strict');
const { chromium } = require('playwright-core');

const [, , url, word, argument] = process.argv;

const visits = {
  async break(page) {
    const button = page.getByRole('button', { name: `Break the lease of ${argument}` });
    await button.click();
    const dialog = page.getByRole('dialog', { name: 'Break this lease?' });
    assert.ok((await dialog.textContent()).includes(argument), 'it says which');
    await dialog.getByRole('button', { name: 'Break the lease' }).click();
    await page.getByText(`The lease of ${argument} is broken.`).waitFor();
    await button.waitFor({ state: 'detached' });
  },
  async keep(page) {
    const row = page.getByRole('row').filter({ hasText: argument });
    await row.waitFor();
    console.log((await row.textContent()).replace(/\s+/g, ' '));
    await row.getByRole('button').click();
    const keep = page.getByRole('dialog').getByRole('button', { name: 'Keep it' });
    assert.ok(await keep.evaluate(button => button === document.activeElement), 'the safe answer has the focus');
    await page.keyboard.press('Enter');
    await keep.waitFor({ state: 'hidden' });
  },
  async see(page) {
    await page.getByText(argument).first().waitFor();
  },
  async login(page) {
    await page.getByRole('textbox', { name: 'Token' }).fill(argument);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('button', { name: /^Break the lease of / }).first().waitFor();
  },
};

async function visit(browser) {
  const page = await browser.newPage();
  const complaints = [];
  page.on('pageerror', error => complaints.push(error.message));
  page.on('console', message => /Content.Security.Policy/.test(message.text()) && complaints.push(message.text()));
  page.on('request', request => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) complaints.push(request.url());
  });
  await page.goto(url);
  await visits[word](page);
  assert.deepEqual(complaints, []);
}

async function visitUnderAnotherName(browser) {
  const page = await browser.newPage();
  const answer = await page.goto(url.replace('127.0.0.1', 'rebound.example'));
  console.log(answer.status());
}

(async () => {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    // The tests may run as root, whom the sandbox does not take; the page is our own.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--host-resolver-rules=MAP rebound.example 127.0.0.1'],
  });
  try {
    await (word === 'rebound' ? visitUnderAnotherName(browser) : visit(browser));
  } finally {
    await browser.close();
  }
  console.log('finished');
})().catch(error => {
  console.error(error);
  process.exitCode = 1;
});
