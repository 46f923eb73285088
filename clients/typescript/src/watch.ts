import { IfmatchError } from './errors.js';
import { listen } from './event-stream.js';
import { absolute, backOff, isTemporary, pause, refusalOf, type Connection } from './http.js';

/** The lease of a resource, as every client may see it. */
export interface LeaseState {
  readonly state: string;
  readonly duration?: string;
  readonly remaining?: number;
  readonly holder?: string;
  readonly fence?: number;
  readonly shared_by?: number;
}

/** A change of a watched resource. `path` names it. */
export type WatchEvent =
  | { readonly type: 'state'; readonly path: string; readonly etag?: string; readonly lease?: LeaseState }
  | { readonly type: 'changed'; readonly path: string; readonly etag?: string; readonly deleted?: boolean }
  | ({ readonly type: 'lease'; readonly path: string; readonly change: string } & LeaseState)
  | { readonly type: 'denied'; readonly path: string; readonly status: number }
  /** Nothing is known until the next `state`. */
  | { readonly type: 'interrupted'; readonly error: IfmatchError };

export interface WatchOptions extends Connection {
  /** The path before those of watches (`watch_prefix`). */
  readonly prefix?: string;
}

/**
 * Yields the changes of one resource or of several, beginning with their state, until the signal ends it. Comes back
 * after each break of the connection. Throws what the backend or ifmatch refuses for good.
 */
export async function* watch(
  urls: string | URL | readonly (string | URL)[],
  options: WatchOptions = {},
): AsyncGenerator<WatchEvent, void> {
  const url = watchUrl(urls, options.prefix ?? '/.watch');
  const { signal } = options;
  for (let attempt = 1; !signal?.aborted; attempt++) {
    let afterMs = 0;
    let error: IfmatchError | undefined;
    try {
      for await (const heard of listen({ ...options, url, method: 'GET' })) {
        if (heard.kind === 'event') {
          attempt = 1;
          yield { ...(heard.data as object), type: heard.name } as WatchEvent;
        } else if (heard.kind === 'end') {
          error = heard.error;
          afterMs = heard.retryMs;
        } else {
          const refusal = refusalOf(`GET ${url}`, heard.answer);
          if (!isTemporary(refusal)) throw refusal;
          error = refusal;
        }
      }
      if (error === undefined) return;
      yield { type: 'interrupted', error };
      await backOff(attempt, error, signal);
      await pause(afterMs, signal);
    } catch (thrown) {
      if (!signal?.aborted) throw thrown;
    }
  }
}

function watchUrl(urls: string | URL | readonly (string | URL)[], prefix: string): string {
  if (typeof urls === 'string' || urls instanceof URL) {
    const url = absolute(urls);
    url.pathname = prefix + url.pathname;
    return url.href;
  }
  const [first, ...others] = urls.map(absolute);
  if (first === undefined) throw new TypeError('name at least one resource to watch');
  if (others.some(url => url.origin !== first.origin)) throw new TypeError('one watch is for one server');
  const url = new URL(prefix, first);
  for (const { pathname, search } of [first, ...others]) url.searchParams.append('path', pathname + search);
  return url.href;
}
