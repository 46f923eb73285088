import { createRoot } from 'react-dom/client';
import { Notes } from './notes';

const name = new URLSearchParams(location.search).get('name') ?? 'Somebody';
createRoot(document.getElementById('page') as HTMLElement).render(<Notes name={name} />);
