import { Lease, watch } from 'ifmatch';
import { useEffect, useState } from 'react';

/** The person who edits a note. While `name` is given, it is this person, unless another one came first. */
export function usePresence(note: string, name: string | undefined): string | undefined {
  const url = `/editors/${encodeURIComponent(note)}`;
  const [editor, setEditor] = useState<string>();

  useEffect(() => {
    const stop = new AbortController();
    async function follow() {
      for await (const event of watch(url, { signal: stop.signal })) {
        if (event.type === 'state') setEditor(event.lease?.holder);
        if (event.type === 'lease') setEditor(event.state === 'available' ? undefined : event.holder);
        if (event.type === 'interrupted') setEditor(undefined);
      }
    }
    // Without it the page works as well, but shows no names.
    follow().catch(console.error);
    return () => stop.abort();
  }, [url]);

  useEffect(() => {
    if (name === undefined) return;
    const stop = new AbortController();
    // The lease is released with the signal. A person who waits for it can edit all the same.
    const wish = { holder: name, maxWaitMs: Infinity, signal: stop.signal };
    Lease.acquire(url, wish).catch(error => stop.signal.aborted || console.error(error));
    return () => stop.abort();
  }, [url, name]);

  return editor;
}

/** A number that grows whenever the resource may have changed. */
export function useChanges(url: string): number {
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    async function follow() {
      for await (const event of watch(url, { signal: stop.signal })) {
        if (event.type === 'state' || event.type === 'changed') setChanges(changes => changes + 1);
      }
    }
    follow().catch(console.error);
    return () => stop.abort();
  }, [url]);
  return changes;
}
