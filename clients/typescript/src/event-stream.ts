import { Unreachable } from './errors.js';
import { withFields, type Answer, type Question } from './http.js';

/** The pieces of an answer with server-sent events, in this order: events, then their end. */
export type Heard =
  | { readonly kind: 'event'; readonly name: string; readonly data: unknown }
  /** The answer is no stream. */
  | { readonly kind: 'answer'; readonly answer: Answer }
  /** The connection has broken, or ifmatch has ended the stream. `retryMs` is when to come back. */
  | { readonly kind: 'end'; readonly error: Unreachable; readonly retryMs: number };

/** ifmatch sends a comment each 15 seconds, so a stream that is silent for this time is dead. */
const SILENCE_MAX_MS = 40_000;

/** Sends a request for server-sent events once, and yields what comes. */
export async function* listen(question: Question): AsyncGenerator<Heard, void> {
  const { url, method, signal, patienceMs = SILENCE_MAX_MS } = question;
  signal?.throwIfAborted();
  const end = new AbortController();
  let silence: ReturnType<typeof setTimeout> | undefined;
  const onAbort = () => {
    clearTimeout(silence);
    end.abort(signal?.reason);
  };
  signal?.addEventListener('abort', onAbort);
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(() => end.abort(new Error(`silent for ${patienceMs / 1000} s`)), patienceMs);
  };
  let retryMs = 1000;
  let cause: unknown = new Error('the stream has ended');
  try {
    heard();
    const headers = withFields(question.headers, { ...question.fields, Accept: 'text/event-stream' });
    const response = await (question.fetch ?? fetch)(url, { method, headers, cache: 'no-store', signal: end.signal });
    const isStream = response.headers.get('Content-Type')?.startsWith('text/event-stream');
    if (!isStream || !response.ok || response.body === null) {
      const answer = { status: response.status, headers: response.headers, text: await response.text() };
      yield { kind: 'answer', answer };
      return;
    }
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    for (let unread = '', piece; !(piece = await reader.read()).done;) {
      heard();
      const blocks = (unread + decoder.decode(piece.value, { stream: true })).split('\n\n');
      unread = blocks.pop() ?? '';
      for (const block of blocks) {
        const lines = new Map(block.split('\n').map(line => line.split(/: ?(.*)/, 2) as [string, string]));
        retryMs = Number(lines.get('retry') ?? retryMs);
        const name = lines.get('event');
        if (name !== undefined) yield { kind: 'event', name, data: JSON.parse(lines.get('data') ?? '{}') };
      }
    }
  } catch (error) {
    signal?.throwIfAborted();
    cause = error;
  } finally {
    clearTimeout(silence);
    signal?.removeEventListener('abort', onAbort);
    end.abort();
  }
  yield { kind: 'end', error: new Unreachable(`${method} ${url}`, cause), retryMs };
}
