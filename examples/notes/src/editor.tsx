import { Conflict, guardedFetch } from 'ifmatch';
import { useEffect, useMemo, useRef, useState } from 'react';
import { Merge } from './merge';
import { useChanges, usePresence } from './presence';

/** One note: a form, the person who edits it, and a dialogue where two have changed it. */
export function Editor({ note, name }: { note: string; name: string }) {
  const url = `/notes/${encodeURIComponent(note)}`;
  const load = useMemo(() => guardedFetch(), [url]);
  /** The version that this person began with. */
  const [base, setBase] = useState<{ text: string; response: Response }>();
  const [text, setText] = useState('');
  const [says, setSays] = useState('Loading');
  const [conflict, setConflict] = useState<Conflict>();
  const isChanged = base !== undefined && text !== base.text;
  const typed = useRef(text);
  const editor = usePresence(note, isChanged ? name : undefined);
  const changes = useChanges(url);

  function fill(text: string) {
    typed.current = text;
    setText(text);
  }

  function type(text: string) {
    fill(text);
    setSays('');
  }

  function show(text: string, response: Response) {
    setBase({ text, response });
    fill(text);
  }

  async function read() {
    const before = typed.current;
    try {
      const response = await load(url);
      const text = await response.clone().text();
      // A person who typed meanwhile keeps the version that he saw. His save is refused, and the page shows both.
      if (typed.current !== before) return;
      show(text, response);
      setSays(says => (says === 'Loading' ? '' : says));
    } catch (error) {
      setSays(String(error));
    }
  }

  useEffect(() => {
    if (!isChanged) void read();
  }, [url, changes]);

  async function save(body: string, seen: Response | undefined) {
    setConflict(undefined);
    try {
      const answer = await load(url, { method: 'PUT', body, base: seen });
      if (answer.ok) show(body, answer);
      setSays(answer.ok ? 'Saved' : `${answer.status} ${await answer.text()}`);
    } catch (error) {
      if (error instanceof Conflict && error.current?.ok) setConflict(error);
      else setSays(String(error));
    }
  }

  return (
    <section>
      <h2>{note}</h2>
      <p>{editor && editor !== name && `${editor} is editing`}</p>
      <p role="status">{says}</p>
      <form onSubmit={event => { event.preventDefault(); void save(text, base?.response); }}>
        <textarea aria-label="Text" rows={12} value={text} onChange={event => type(event.target.value)} />
        <button disabled={!isChanged}>Save</button>
      </form>
      {conflict && (
        <Merge conflict={conflict} before={base?.text ?? ''} mine={text} onSave={save} onCancel={() => setConflict(undefined)} />
      )}
    </section>
  );
}
