// The texts for numbers, times and clients.

export const whole = value => new Intl.NumberFormat('en', { maximumFractionDigits: 0 }).format(value);

export const count = (value, one, many) => `${whole(value)} ${value === 1 ? one : many}`;

export function rate(value) {
  if (value === 0) return '0';
  return value >= 100 ? whole(value) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function time(ms) {
  if (ms < 1000) return Math.round(ms) + ' ms';
  const seconds = ms / 1000;
  if (seconds < 10) return seconds.toFixed(1) + ' s';
  const s = Math.floor(seconds % 60), m = Math.floor(seconds / 60) % 60, h = Math.floor(seconds / 3600) % 24, d = Math.floor(seconds / 86400);
  if (d) return d + ' d ' + h + ' h';
  if (h) return h + ' h ' + String(m).padStart(2, '0') + ' min';
  if (m) return m + ' min ' + String(s).padStart(2, '0') + ' s';
  return s + ' s';
}

/* In whole seconds, for what counts up or down. */
export function clock(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return seconds < 60 ? seconds + ' s' : time(ms);
}

export const moment = date => new Date(date).toLocaleTimeString([], { hour12: false });

/* Credentials tell clients apart better than addresses, which a proxy before this one may give to all of them. */
export const client = who => who.principal ?? who.client ?? 'local';
