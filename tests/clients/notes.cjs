// The steps of two people with the page of examples/notes, in the Chromium of this machine: node notes.cjs URL
//
// It says what they see, and "finished" at its end.
'use strict';
const { chromium } = require('playwright-core');

const [, , url] = process.argv;

async function open(browser, name) {
  const page = await (await browser.newContext()).newPage();
  page.on('pageerror', error => console.log(`${name}: ${error}`));
  await page.goto(`${url}?name=${name}`);
  await page.getByRole('button', { name: 'shopping' }).click();
  await page.waitForFunction(() => document.querySelector('textarea')?.value === 'milk');
  return page;
}

(async () => {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    // The tests may run as root, whom the sandbox does not take; the page is our own.
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
  try {
    const [ann, ben] = [await open(browser, 'Ann'), await open(browser, 'Ben')];
    const text = page => page.getByRole('textbox', { name: 'Text' });
    const shows = (page, value) => page.waitForFunction(value => document.querySelector('textarea').value === value, value);

    await text(ann).fill('milk, bread');
    await ben.getByText('Ann is editing').waitFor();
    console.log('Ben sees: Ann is editing');
    await text(ben).fill('milk, tea');
    await ann.getByRole('button', { name: 'Save' }).click();
    await ann.getByText('Saved').waitFor();

    await ben.getByRole('button', { name: 'Save' }).click();
    const dialog = ben.getByRole('dialog', { name: 'Somebody else has changed this note' });
    console.log(`Ben was told: ${await dialog.getByText('You began with: milk').textContent()}`);
    await dialog.getByText('milk, bread', { exact: true }).first().waitFor();
    await dialog.getByRole('button', { name: 'Save merged' }).click();
    await ben.getByText('Saved').waitFor();
    console.log('Ben sees: Saved');
    await shows(ann, 'milk, bread\nmilk, tea');
    console.log(`Ann sees: ${(await text(ann).inputValue()).replace('\n', '\\n')}`);

    await ben.getByLabel('New note').fill('garden');
    await ben.getByRole('button', { name: 'Create' }).click();
    await ben.getByRole('heading', { name: 'garden' }).waitFor();
    await ann.reload();
    await ann.getByRole('button', { name: 'garden' }).waitFor();
    console.log('Ann sees the note of Ben');
  } finally {
    await browser.close();
  }
  console.log('finished');
})().catch(error => {
  console.error(error);
  process.exitCode = 1;
});
