// The pages of one browser share a sign-in while one of them is open: a new tab asks, and an open one answers. The channel is that of
// this origin, its port included; nothing is written to disk, and no other server is sent anything.

export interface GivenSignIn {
  readonly token: string;
  readonly namespaces: string;
}

type Note = { readonly kind: 'ask' } | ({ readonly kind: 'signed in' | 'signed out' } & GivenSignIn);

/** An open page answers at once, also in the background. */
const answerMsMax = 300;

export class Tabs {
  readonly #channel = new BroadcastChannel('portolan-sign-in');
  #taken: ((given: GivenSignIn) => void) | undefined;

  /** `current` is what this page is signed in with; `onSignedOut` is told of pages that were signed in with the same. */
  constructor(current: () => GivenSignIn, onSignedOut: () => void) {
    this.#channel.onmessage = ({ data }: MessageEvent<Note>) => {
      const own = current();
      if (data.kind === 'signed in') this.#taken?.(data);
      else if (data.kind === 'ask' && own.token !== '') this.#tell({ kind: 'signed in', ...own });
      else if (data.kind === 'signed out' && own.token === data.token) onSignedOut();
    };
  }

  /** What another page is signed in with; undefined if none is. */
  ask(): Promise<GivenSignIn | undefined> {
    return new Promise((resolve) => {
      const patience = setTimeout(() => resolve(undefined), answerMsMax);
      this.#taken = (given) => {
        clearTimeout(patience);
        this.#taken = undefined;
        resolve(given);
      };
      this.#tell({ kind: 'ask' });
    });
  }

  signedOut(given: GivenSignIn): void {
    this.#tell({ kind: 'signed out', ...given });
  }

  #tell(note: Note): void {
    this.#channel.postMessage(note);
  }
}
