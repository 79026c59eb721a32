// A way to a home that can be cut and mended while it is used: what a broken cable looks like to those who talk over it.

import type { HttpRequest, HttpResponse, HttpTransport } from '../../base/http.ts';

export interface CutTransport extends HttpTransport {
  cut(): void;
  mend(): void;
  isCut(): boolean;
}

export function cutTransport(open: () => HttpTransport): CutTransport {
  let inner: HttpTransport | undefined = open();
  return {
    send: (request: HttpRequest): Promise<HttpResponse> => {
      if (inner === undefined)
        return Promise.reject(new Error('the way to the broker is cut (portolan demo heal mends it)'));
      return inner.send(request);
    },
    cut: () => {
      // Closing breaks the watches under way too.
      inner?.close();
      inner = undefined;
    },
    mend: () => {
      inner ??= open();
    },
    isCut: () => inner === undefined,
    close: () => inner?.close(),
  };
}
