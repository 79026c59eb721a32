// Search over everything, from everywhere: views, services, clusters, codes, and names to ask. Ctrl-K opens it; so does `/`
// where no view has a search of its own.

import { useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { useCodeDocs } from '../data/codes.ts';
import { useRows } from '../data/hooks.ts';
import { findAll, type Hit } from '../data/search.ts';
import { views } from './views.ts';

const keysKey = 'portolan-keys';

export function Search() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [path] = useLocation();
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      const isSlash = event.key === '/' && !isTyping && path !== '/services' && localStorage.getItem(keysKey) !== 'off';
      const isControlK = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey);
      if (!isSlash && !isControlK) return;
      event.preventDefault();
      setIsOpen(true);
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [path]);
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  return (
    <>
      <button type="button" className="search-button" onClick={() => setIsOpen(true)}>
        Search <kbd>Ctrl K</kbd>
      </button>
      <dialog ref={dialog} className="search" aria-label="Search everything" onClose={() => setIsOpen(false)}>
        {isOpen ? <Palette close={() => setIsOpen(false)} /> : null}
      </dialog>
    </>
  );
}

function Palette({ close }: { readonly close: () => void }) {
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const [, navigate] = useLocation();
  const [services, clusters] = [useRows('services'), useRows('clusters')];
  const [codes = []] = useCodeDocs();
  const hits = findAll(text, { services, clusters, codes, views });
  const open = (hit: Hit | undefined) => {
    if (hit === undefined) return;
    navigate(hit.path);
    close();
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    setChosen((one) => Math.max(0, Math.min(hits.length - 1, one + step)));
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        open(hits[chosen]);
      }}
    >
      <input
        // biome-ignore lint/a11y/noAutofocus: the dialog was opened to type here.
        autoFocus
        type="search"
        role="combobox"
        aria-expanded="true"
        aria-controls="search-hits"
        aria-activedescendant={hits.length === 0 ? undefined : `search-hit-${chosen}`}
        aria-label="Search services, clusters, codes, names and views"
        placeholder="Service, cluster, code, name or view"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id="search-hits" role="listbox" aria-label="Found" className="search-hits">
        {hits.map((hit, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys go to the field, which moves the choice.
          <div
            key={hit.path}
            id={`search-hit-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onClick={() => open(hit)}
          >
            <span>{hit.text}</span> <span className="small">{hit.kind}</span>
          </div>
        ))}
      </div>
      {hits.length === 0 ? <p className="small">Nothing of this name that you may see.</p> : null}
    </form>
  );
}
