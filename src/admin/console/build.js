// Elements, tables and the sections of the page.

export const at = id => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [property, value] of Object.entries(properties)) {
    if (property === 'class') made.className = value;
    else if (property.startsWith('aria-') || ['scope', 'role', 'href'].includes(property)) made.setAttribute(property, value);
    else made[property] = value;
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

export function drawing(name, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

export const text = (place, value) => { if (place.textContent !== value) place.textContent = value; };

export const number = (cell, value, shown) => { text(cell, shown); cell.classList.toggle('zero', !value); };

/* A button in a cell, made once. What it does is read from the row at the time of the click. */
export function button(cell, row, properties, press) {
  if (!cell.firstChild) cell.append(element('button', { type: 'button', ...properties }));
  cell.firstChild.onclick = () => press(row);
  return cell.firstChild;
}

/* A table that reuses the elements of rows with the same keys, so that the focus stays in place. */
export function table(place, label, columns, rows, empty) {
  if (rows.length === 0) {
    const shown = element('div', { class: 'empty' }, ...empty);
    if (place.textContent !== shown.textContent) place.replaceChildren(shown);
    return;
  }
  let body = place.querySelector('tbody');
  if (!body) {
    const heads = columns.map(column => element('th', { scope: 'col', class: column.class ?? '' }, column.title));
    body = element('tbody');
    place.replaceChildren(element('div', { class: 'scroll' }, element('table', { 'aria-label': label }, element('thead', {}, element('tr', {}, ...heads)), body)));
  }
  const old = new Map([...body.children].map(row => [row.dataset.key, row]));
  rows.forEach((row, index) => {
    let line = old.get(row.name);
    if (!line) {
      line = element('tr', {}, ...columns.map(column => element('td', { class: column.class ?? '' })));
      line.dataset.key = row.name;
    }
    old.delete(row.name);
    columns.forEach((column, place) => column.show(line.children[place], row));
    if (body.children[index] !== line) body.insertBefore(line, body.children[index] ?? null);
  });
  old.forEach(line => line.remove());
}

/* Pairs of a name and a value; those without a value are left out. */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false);
  return element('dl', {}, ...known.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));
}

/* Unfolds a section when it gets something to show, and folds it when it has nothing, but not against the user. */
export function unfold(section, hasContent, note) {
  const details = at(section).querySelector('details');
  text(details.querySelector('summary .note'), note);
  if (details.dataset.has === String(hasContent)) return;
  details.dataset.has = String(hasContent);
  details.open = hasContent;
}

/* Goes to a section and unfolds it. */
export function goTo(section) {
  const place = at(section), details = place.querySelector('details');
  if (details) details.open = true;
  place.scrollIntoView();
  (details?.querySelector('summary') ?? place.querySelector('button')).focus({ preventScroll: true });
}

export function detail(title, ...body) {
  text(at('detail-title'), title);
  at('detail-body').replaceChildren(...body);
  at('detail').showModal();
}

let hideSaid;
export function say(words) {
  text(at('said'), words);
  at('said').classList.add('shown');
  clearTimeout(hideSaid);
  hideSaid = setTimeout(() => at('said').classList.remove('shown'), 5000);
}
