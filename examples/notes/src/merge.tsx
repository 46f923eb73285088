import type { Conflict } from 'ifmatch';
import { useEffect, useRef, useState } from 'react';

interface Props {
  conflict: Conflict;
  before: string;
  mine: string;
  onSave: (text: string, seen: Response) => void;
  onCancel: () => void;
}

/** Lets a person merge two versions. */
export function Merge({ conflict: { current }, before, mine, onSave, onCancel }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [theirs, setTheirs] = useState('');
  const [merged, setMerged] = useState('');

  useEffect(() => {
    dialog.current?.showModal();
    async function show() {
      const theirs = await current?.clone().text() ?? '';
      setTheirs(theirs);
      setMerged(`${theirs}\n${mine}`);
    }
    void show();
  }, [current]);

  if (!current) return null;
  return (
    <dialog ref={dialog} aria-label="Somebody else has changed this note" onCancel={onCancel}>
      <h3>Somebody else has changed this note</h3>
      <p>You began with: {before}</p>
      <div className="versions">
        <figure><figcaption>Theirs</figcaption><pre>{theirs}</pre></figure>
        <figure><figcaption>Yours</figcaption><pre>{mine}</pre></figure>
      </div>
      <textarea aria-label="Merged" rows={6} value={merged} onChange={event => setMerged(event.target.value)} />
      <button onClick={() => onSave(merged, current)}>Save merged</button>
      <button onClick={onCancel}>Go on editing</button>
    </dialog>
  );
}
