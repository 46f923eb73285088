// The steps of a person in the console, in the Chromium of this machine. Each word of the command line is one visit:
//
//   node console.cjs URL break KEY      breaks a lease, and waits until it is gone
//   node console.cjs URL keep KEY       asks for it, and decides otherwise
//   node console.cjs URL see TEXT       waits until a text is shown
//   node console.cjs URL tile NAME      says what a tile shows, follows it with the keyboard, and says the table behind it
//   node console.cjs URL fold NAME      waits until a section is folded, and says its summary
//   node console.cjs URL hour TEXT      waits until the hour of all routes says a text, then until a bar is drawn
//   node console.cjs URL route NAME     opens a route, and says its settings
//   node console.cjs URL idle NAME      finds a route without requests in the fold
//   node console.cjs URL refusals CODE  reads the refusals, leaves those of one group, and opens the latest one
//   node console.cjs URL resource KEY   goes from a hot resource to its timeline, and says it
//   node console.cjs URL unknown TEXT   asks for the timeline of what is no key
//   node console.cjs URL live LEASE     takes the lease at a URL, sees it come and go, and says what the page has asked for
//   node console.cjs URL back           goes on after its stream has broken off
//   node console.cjs URL login TOKEN    gives a token first, then waits for a lease
//   node console.cjs URL rebound        opens the same listener under a name of its own
//   node console.cjs URL inspect KEY WIDTH SCHEME
//                                       looks at it at a width, light or dark, with axe-core. With WRITE_SCREENSHOTS, it
//                                       writes the pictures of docs/admin.md
//
// It says what it saw, and "finished" at its end.
'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { chromium } = require('playwright-core');

const [, , url, word, argument] = process.argv;

const inOneLine = text => text.replace(/\s+/g, ' ').trim();
const region = (page, name) => page.getByRole('region', { name, exact: true });
const say = async locator => {
  for (const one of await locator.all()) console.log(inOneLine(await one.innerText()));
};

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
    const row = region(page, 'Leases').getByRole('row').filter({ hasText: argument });
    await row.waitFor();
    console.log(inOneLine(await row.textContent()));
    await row.getByRole('button', { name: /^Break/ }).click();
    const keep = page.getByRole('dialog').getByRole('button', { name: 'Keep it' });
    assert.ok(await keep.evaluate(button => button === document.activeElement), 'the safe answer has the focus');
    await page.keyboard.press('Enter');
    await keep.waitFor({ state: 'hidden' });
  },
  async see(page) {
    await page.getByText(argument).first().waitFor();
  },
  async tile(page) {
    const tile = page.getByRole('link', { name: argument });
    await page.locator('.tile.bad', { has: page.getByText(argument, { exact: true }) }).waitFor();
    console.log(inOneLine(await tile.innerText()));
    await tile.press('Enter');
    const section = page.locator('section', { has: page.locator('summary:focus') });
    await section.getByRole('table').waitFor();
    await say(section.getByRole('table').locator('tbody tr'));
  },
  async fold(page) {
    const summary = region(page, argument).locator('details:not([open]) > summary');
    await summary.locator('.note:not(:empty)').first().waitFor();
    console.log(inOneLine(await summary.innerText()));
  },
  async hour(page) {
    const hour = page.getByRole('img', { name: /^Requests of all routes in the last hour/ });
    await page.getByRole('img', { name: argument }).first().waitFor();
    console.log(await hour.getAttribute('aria-label'));
    const { bars, edge, width } = await hour.evaluate(drawing => {
      const own = drawing.getBoundingClientRect(), bars = [...drawing.querySelectorAll('rect')].map(bar => bar.getBoundingClientRect());
      return { bars: bars.length, edge: Math.round(own.right - Math.max(...bars.map(bar => bar.right))), width: own.width };
    });
    assert.ok(bars > 0 && edge >= 0 && edge < width / 60, 'the current minute is the last one');
  },
  async route(page) {
    await region(page, 'Routes').getByRole('button', { name: argument, exact: true }).press('Enter');
    const dialog = page.getByRole('dialog', { name: `Route ${argument}` });
    await dialog.getByRole('img', { name: `${argument} in the last hour` }).waitFor();
    console.log(inOneLine(await dialog.locator('dl').innerText()));
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
  },
  async idle(page) {
    const fold = page.locator('#idle');
    await fold.locator('summary').click();
    console.log(inOneLine(await fold.locator('summary').innerText()));
    await fold.getByRole('button', { name: argument }).waitFor();
    assert.equal(await page.locator('#routes-table').getByRole('button', { name: argument }).count(), 0);
  },
  async refusals(page) {
    const rows = region(page, 'Refusals').getByRole('table').locator('tbody tr');
    const group = region(page, 'Refusals').getByRole('button', { name: argument, pressed: false }).first();
    await group.waitFor();
    await say(rows);
    console.log('group ' + inOneLine(await group.innerText()));
    await group.press('Enter');
    await region(page, 'Refusals').getByRole('button', { name: argument, pressed: true }).waitFor();
    await say(rows);
    await rows.first().getByRole('button', { name: argument }).press('Enter');
    await page.getByRole('dialog').getByText('Tag sent').waitFor();
    console.log(inOneLine(await page.getByRole('dialog').locator('dl').innerText()));
  },
  async resource(page) {
    await region(page, 'Hot resources').getByRole('button', { name: argument }).press('Enter');
    const resource = region(page, 'Resource');
    await resource.getByRole('list', { name: 'What happened, the oldest first' }).waitFor();
    assert.equal(await resource.getByRole('button', { name: 'Close' }).evaluate(button => button === document.activeElement), true);
    await say(resource.locator('.lanes .lane'));
    console.log('facts ' + inOneLine(await resource.locator('dl').innerText()));
    await say(resource.locator('.lease-axis li'));
    for (const event of await resource.locator('.sequence li').all()) {
      const words = await event.locator('.hidden, .arrow').allInnerTexts();
      console.log(inOneLine(words.join(' | ')));
      const places = await event.evaluate(line => {
        const middle = document.querySelector('.lane.proxy').getBoundingClientRect(), x = middle.left + middle.width / 2;
        return [...line.querySelectorAll('.arrow')].map(arrow => {
          const { left, right } = arrow.getBoundingClientRect();
          return Math.min(Math.abs(left - x), Math.abs(right - x));
        });
      });
      assert.ok(places.every(gap => gap < 1.5), 'each arrow begins or ends at ifmatch');
    }
    await resource.getByRole('button', { name: 'Close' }).press('Enter');
    await resource.waitFor({ state: 'hidden' });
  },
  async unknown(page) {
    await page.getByRole('searchbox', { name: 'Key of a resource' }).fill(argument);
    await page.keyboard.press('Enter');
    await page.getByText('This is not the key of a resource').waitFor();
    await region(page, 'Resource').waitFor({ state: 'hidden' });
  },
  async live(page) {
    const targets = [];
    page.on('request', request => targets.push(new URL(request.url()).pathname));
    await page.reload();
    await page.getByText('No lease is held').waitFor({ state: 'attached' });
    const grant = await fetch(argument, { method: 'POST', headers: { 'Lease-Duration': 'infinite', 'Lease-Holder': 'ann' } });
    const row = region(page, 'Leases').getByRole('row').filter({ hasText: 'ann' });
    await row.waitFor();
    await fetch(argument, { method: 'DELETE', headers: { 'Lease-Id': grant.headers.get('Lease-Id') } });
    await row.waitFor({ state: 'detached' });
    console.log(targets.filter(target => target !== '/' && !target.startsWith('/console/')).join(' '));
  },
  async back(page) {
    await page.locator('#state.good').waitFor();
    await page.context().setOffline(true);
    await page.evaluate(() => document.getElementById('pause').click());
    await page.evaluate(() => document.getElementById('pause').click());
    await page.locator('#state.bad').waitFor();
    await page.context().setOffline(false);
    await page.locator('#state.good').waitFor();
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
  const colour = element => {
    const style = getComputedStyle(element);
    return element.matches('rect') ? style.fill : element.matches('.arrow') ? style.borderBottomColor : style.backgroundColor;
  };
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const graphics = [...document.querySelectorAll('.bars rect, .left i, .bar-row i, .legend i, .code i, .arrow')];
  const within = element => getComputedStyle(element.closest('.left, .bar-row') ?? element.closest('section')).backgroundColor;
  const low = graphics.filter(element => contrast(colour(element), within(element)) < 3).map(element => element.outerHTML);
  return { number: graphics.length, low: [...new Set(low)] };
}

/* An hour of made-up counts: no process of a test is that old. */
async function withAnHour(page) {
  await page.addInitScript(() => {
    const ask = window.fetch;
    window.fetch = async (target, options) => {
      const answer = await ask(target, options);
      if (!String(target).startsWith('/watch')) return answer;
      const wave = (minute, low, high, each) => Math.round(low + (high - low) * (0.5 + 0.5 * Math.sin(minute / each)));
      const hour = (high, conflicts) => Array.from({ length: 59 }, (_, minute) => [wave(minute, high / 3, high, 7), wave(minute, 2, 9, 4), Math.max(0, wave(minute, -conflicts, conflicts, 3)), minute % 9 === 4 ? 2 : 0, minute > 51 && minute < 55 ? 3 : 0]);
      const replaced = line => {
        const part = JSON.parse(line.slice('data: '.length));
        const route = (name, ...most) => ({ route: name, until_now: [0, 0, 0, 0, 0], minutes: hour(...most) });
        part.routes = [route('documents', 40, 3), route('orders', 90, 6), route('search', 12, 0)];
        return 'data: ' + JSON.stringify(part);
      };
      const text = answer.body.pipeThrough(new TextDecoderStream()).pipeThrough(new TransformStream({
        transform: (chunk, out) => out.enqueue(chunk.replace(/(?<=event: history\n)data: .*/, replaced)),
      })).pipeThrough(new TextEncoderStream());
      return new Response(text, { status: answer.status, headers: answer.headers });
    };
  });
}

/* The pictures of docs/admin.md: their names and heights, by width and scheme. */
const PICTURES = { '1280 light': ['console', 1420], '390 dark': ['console-narrow', 900] };

async function picture(page, place) {
  if (!process.env.WRITE_SCREENSHOTS || !PICTURES[place]) return;
  const [name, height] = PICTURES[place], { width } = page.viewportSize();
  const file = path.join(__dirname, '../../docs', name + '.png');
  await page.screenshot({ path: file, clip: { x: 0, y: 0, width, height }, fullPage: true });
}

async function inspect(browser) {
  const [width, colorScheme] = [Number(process.argv[5]), process.argv[6]];
  const context = await browser.newContext({ viewport: { width, height: 844 }, colorScheme, timezoneId: 'UTC' });
  const page = await context.newPage();
  await withAnHour(page);
  await page.goto(url);
  const button = page.getByRole('button', { name: `Break the lease of ${argument}` });
  await button.waitFor();
  await page.getByRole('img', { name: /^Requests of all routes in the last hour: [1-9]/ }).waitFor();
  await page.evaluate(fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
  const findings = async () => {
    const { violations } = await page.evaluate(() => axe.run());
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
  };
  const fits = async () => {
    const overflows = () => [document.documentElement, ...document.querySelectorAll('.scroll, .sequence, .lease-axis')]
      .filter(element => element.scrollWidth > element.clientWidth).map(element => element.outerHTML.slice(0, 300));
    assert.deepEqual(await page.evaluate(overflows), [], 'all of it is on the screen');
  };
  assert.deepEqual(await findings(), []);
  await fits();
  for (const part of [button, page.getByText('no end').first()]) {
    const { x, width: own } = await part.boundingBox();
    assert.ok(x >= 0 && own > 0 && x + own <= width, `from ${x} to ${x + own} of ${width}`);
  }
  const place = `${width} ${colorScheme}`;
  await page.evaluate(() => scrollTo(0, 0));
  await picture(page, place);
  // All that is folded, and the timeline of a resource.
  await page.evaluate(() => document.querySelectorAll('details').forEach(details => { details.open = true; }));
  await region(page, 'Leases').getByRole('button', { name: argument, exact: true }).click();
  await region(page, 'Resource').locator('.sequence li').first().waitFor();
  assert.deepEqual(await findings(), [], 'with a timeline');
  await fits();
  if (place === '1280 light' && process.env.WRITE_SCREENSHOTS) {
    await region(page, 'Resource').screenshot({ path: path.join(__dirname, '../../docs', 'console-resource.png') });
  }
  const { number, low } = await page.evaluate(lowContrasts);
  assert.deepEqual(low, []);
  await region(page, 'Routes').getByRole('button', { name: 'orders', exact: true }).click();
  await page.getByRole('dialog').locator('dl').waitFor();
  assert.deepEqual(await findings(), [], 'in the dialog of a route');
  await page.keyboard.press('Escape');
  await button.click();
  assert.deepEqual(await findings(), [], 'and in the question');
  await context.close();
  console.log(`${place}: ${number > 100 ? 'graphics and no finding' : 'no graphics'}`);
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
