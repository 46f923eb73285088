// What a person does in the console, in the Chromium of this machine. Each word of the command line is one visit:
//
//   node console.cjs URL break KEY     breaks a lease, and waits until it is gone
//   node console.cjs URL keep KEY      asks for it, and decides otherwise
//   node console.cjs URL see TEXT      waits until a text is shown
//   node console.cjs URL history NAME  waits until the history of a tile has a bar
//   node console.cjs URL refusals KEY  goes from a hot resource to its refusals, and opens the latest one
//   node console.cjs URL login TOKEN   gives a token first, then waits for a lease
//   node console.cjs URL rebound       opens the same listener under a name of its own
//   node console.cjs URL inspect KEY   looks at it on a telephone and on a desk, light and dark, with axe-core
//
// It says what it saw, and "finished" at its end.
'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
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
  async history(page) {
    const tile = page.locator('.tile').filter({ hasText: argument });
    await tile.locator('.history i:not([style*="height: 0%"])').first().waitFor({ state: 'attached' });
    const label = await tile.getByRole('img').getAttribute('aria-label');
    assert.match(label, /^Conflicts of the last \d+ rounds: at most [\d.]+ per second$/);
  },
  async refusals(page) {
    const timeline = page.getByRole('list', { name: 'Last refusals' });
    const elsewhere = timeline.locator('summary').filter({ hasText: '/elsewhere' });
    await elsewhere.waitFor();
    await page.getByRole('button', { name: `Refusals of ${argument}` }).press('Enter');
    await elsewhere.waitFor({ state: 'detached' });
    const items = timeline.getByRole('listitem');
    for (const item of await items.all()) console.log((await item.locator('summary').textContent()).replace(/\s+/g, ' '));
    await items.first().locator('summary').press('Enter');
    await items.first().getByText('Tag sent').waitFor();
    console.log((await items.first().locator('dl').innerText()).replace(/\s+/g, ' '));
    // A round later it is still open, and what is no key is said to be none.
    await page.waitForResponse(answer => answer.url().includes('/refusals?'));
    await items.first().getByText('Tag sent').waitFor();
    await page.getByRole('searchbox', { name: 'Key', exact: true }).fill('no key');
    await page.getByText('This is not the key of a resource').waitFor();
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

/* Runs in the page. Contrast of graphics by WCAG 2.2, 1.4.11; axe-core looks at that of text alone. */
function lowContrasts() {
  const channels = colour => colour.match(/[\d.]+/g).slice(0, 3).map(value => value / 255);
  const linear = value => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const weigh = (sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at];
  const luminance = colour => channels(colour).map(linear).reduce(weigh, 0);
  const background = element => getComputedStyle(element).backgroundColor;
  const contrast = (one, other) => {
    const [dark, light] = [luminance(background(one)), luminance(background(other))].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const graphics = [...document.querySelectorAll('.bar i, .left i, .history i, .legend i')];
  const within = element => (element.closest('.bar, .left') ?? element.closest('.tile, section'));
  const low = graphics.filter(element => contrast(element, within(element)) < 3).map(element => element.outerHTML);
  return { number: graphics.length, low: [...new Set(low)] };
}

async function inspectAt(browser, width, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height: 844 }, colorScheme });
  const page = await context.newPage();
  await page.goto(url);
  const row = page.getByRole('row').filter({ hasText: argument });
  const button = row.getByRole('button');
  await button.waitFor();
  await page.getByText(/rates of the last/).waitFor();
  await page.evaluate(fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
  const findings = async () => {
    const { violations } = await page.evaluate(() => axe.run());
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
  };
  await page.getByRole('list', { name: 'Last refusals' }).locator('summary').first().click();
  assert.deepEqual(await findings(), []);
  for (const part of [button, row.getByText('no end')]) {
    const { x, width: own } = await part.boundingBox();
    assert.ok(x >= 0 && own > 0 && x + own <= width, `from ${x} to ${x + own} of ${width}`);
  }
  const overflows = () => [document.documentElement, ...document.querySelectorAll('.scroll')]
    .filter(element => element.scrollWidth > element.clientWidth).map(element => element.outerHTML);
  assert.deepEqual(await page.evaluate(overflows), [], 'all of it is on the screen');
  const { number, low } = await page.evaluate(lowContrasts);
  assert.deepEqual(low, []);
  await button.click();
  assert.deepEqual(await findings(), [], 'and in the dialog');
  await context.close();
  console.log(`${width} ${colorScheme}: ${number > 100 ? 'graphics and no finding' : 'no graphics'}`);
}

async function inspect(browser) {
  for (const width of [390, 1280]) {
    for (const colorScheme of ['light', 'dark']) await inspectAt(browser, width, colorScheme);
  }
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
    const others = { inspect, rebound: visitUnderAnotherName };
    await (others[word] ?? visit)(browser);
  } finally {
    await browser.close();
  }
  console.log('finished');
})().catch(error => {
  console.error(error);
  process.exitCode = 1;
});
