import { guardedFetch } from 'ifmatch';
import { useEffect, useState, type FormEvent } from 'react';
import { Editor } from './editor';

/** The list of notes, and the one that is open. */
export function Notes({ name }: { name: string }) {
  const [notes, setNotes] = useState<string[]>([]);
  const [open, setOpen] = useState<string>();
  const [error, setError] = useState<string>();

  const list = () =>
    fetch('/notes', { cache: 'no-store' }).then(answer => answer.json()).then(setNotes, error => setError(String(error)));
  useEffect(() => void list(), []);

  async function create(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    const note = String(new FormData(form).get('note'));
    try {
      // If two people choose one name at the same time, one of them gets an error.
      await guardedFetch()(`/notes/${encodeURIComponent(note)}`, { method: 'PUT', body: '', create: true });
      form.reset();
      setError(undefined);
      await list();
      setOpen(note);
    } catch (error) {
      setError(String(error));
    }
  }

  return (
    <main>
      <nav>
        <h1>Notes</h1>
        <ul>
          {notes.map(note => (
            <li key={note}>
              <button aria-current={note === open ? 'page' : undefined} onClick={() => setOpen(note)}>{note}</button>
            </li>
          ))}
        </ul>
        <form onSubmit={create}>
          <label>New note <input name="note" required /></label>
          <button>Create</button>
        </form>
        {error && <p role="alert">{error}</p>}
      </nav>
      {open === undefined ? <p>Choose a note.</p> : <Editor key={open} note={open} name={name} />}
    </main>
  );
}
