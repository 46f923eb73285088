// The tiles: what needs an operator, by number and colour.

import { at, text } from './build.js';

export function showTile(name, kind, value, note) {
  const tile = at('tile-' + name);
  tile.className = 'tile ' + kind;
  text(tile.querySelector('strong'), value);
  text(tile.querySelector('.note'), note);
}
