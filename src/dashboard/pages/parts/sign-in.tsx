// Signing in with a token. It stays in the tabs of this browser (sessionStorage) and is sent with each request; there is no cookie.

import { type FormEvent, useId, useState } from 'react';
import { useConnection, useLive } from '../data/hooks.ts';

export function SignIn({ why }: { readonly why: string }) {
  return (
    <main className="sign-in">
      <img src="/icon.svg" alt="" width="48" height="48" />
      <h1>Portolan</h1>
      <p>Sign in with a token. You see what it may read, and nothing can be changed from here.</p>
      {why !== '' && (
        <p className="banner banner-failed" role="alert">
          {why}
        </p>
      )}
      <SignInForm />
      <details>
        <summary>Where do I get a token?</summary>
        <p>
          The demo prints one, and <code>portolan dashboard token --kubeconfig …</code> makes one for each home. Any
          bearer token of the homes will do. For several homes with different tokens write{' '}
          <code>east=TOKEN west=TOKEN</code>.
        </p>
      </details>
    </main>
  );
}

export function SignInForm() {
  const live = useLive();
  const connection = useConnection();
  const [token, setToken] = useState('');
  const [namespaces, setNamespaces] = useState(live.namespaces());
  const id = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim() !== '') live.signIn(token, namespaces);
  };
  return (
    <form className="form" onSubmit={submit}>
      <label htmlFor={`${id}-token`}>Token</label>
      <input
        id={`${id}-token`}
        type="password"
        autoComplete="off"
        spellCheck={false}
        value={token}
        onChange={(event) => setToken(event.target.value)}
      />
      <label htmlFor={`${id}-namespaces`}>Namespaces, if the token may not read all of them</label>
      <input
        id={`${id}-namespaces`}
        placeholder="shop, billing"
        autoComplete="off"
        spellCheck={false}
        value={namespaces}
        onChange={(event) => setNamespaces(event.target.value)}
      />
      <button type="submit" className="main" disabled={connection.kind === 'connecting'}>
        {connection.kind === 'connecting' ? 'Signing in' : 'Sign in'}
      </button>
    </form>
  );
}
