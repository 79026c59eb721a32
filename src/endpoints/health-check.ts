// How to find out whether a registered process is well, as a person writes it and as a slice carries it; and what a
// row of answers says about its readiness. Pure.
//
// A probe always goes to the registered address itself: a registration must not make the controller connect
// elsewhere. The host in a URL is only sent as the Host header.

export type Probe =
  | { readonly kind: 'tcp'; readonly port: number }
  | {
      readonly kind: 'http';
      readonly isSecure: boolean;
      readonly host: string;
      readonly port: number;
      readonly path: string;
    };

export interface HealthCheck {
  readonly probe: Probe;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** Good answers in a row that make it ready. */
  readonly rise: number;
  /** Bad answers in a row that make it unready. */
  readonly fall: number;
}

export const checkDefaults = { intervalMs: 5_000, timeoutMs: 2_000, rise: 1, fall: 3 } as const;
const intervalMsMin = 200;

/** `tcp`, `tcp:PORT` or a URL. Throws with what is wrong. `firstPort` is where plain `tcp` knocks. */
export function parseProbe(text: string, firstPort: number): Probe {
  const tcp = /^tcp(?::(\d{1,5}))?$/.exec(text);
  if (tcp !== null) return { kind: 'tcp', port: checkedPort(Number(tcp[1] ?? firstPort), text) };
  const url = /^https?:\/\//.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) {
    throw new Error(
      `check ${JSON.stringify(text)}: write tcp, tcp:PORT, http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH`,
    );
  }
  const isSecure = url.protocol === 'https:';
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port);
  return { kind: 'http', isSecure, host: url.host, port: checkedPort(port, text), path: url.pathname + url.search };
}

function checkedPort(port: number, text: string): number {
  if (port < 1 || port > 65535) throw new Error(`check ${JSON.stringify(text)}: the port must be from 1 to 65535`);
  return port;
}

/** Reads the annotation of a slice, which any client may have written. Throws with what is wrong. */
export function decodeCheck(text: string): HealthCheck {
  const value = parseJson(text) as Partial<HealthCheck> | null;
  const { probe, intervalMs = 0, timeoutMs = 0, rise = 0, fall = 0 } = value ?? {};
  const isProbe =
    probe?.kind === 'tcp' || (probe?.kind === 'http' && typeof probe.path === 'string' && probe.path.startsWith('/'));
  if (!isProbe || !Number.isInteger(probe.port)) throw new Error('its probe is neither tcp nor http');
  checkedPort(probe.port, text);
  const numbers = { intervalMs, timeoutMs, rise, fall };
  for (const [name, number] of Object.entries(numbers)) {
    if (!Number.isFinite(number) || number <= 0) throw new Error(`its ${name} is not a positive number`);
  }
  return { probe, ...numbers, intervalMs: Math.max(intervalMs, intervalMsMin) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error('it is not JSON', { cause });
  }
}

export interface CheckState {
  readonly isUp: boolean;
  /** Answers in a row that contradict `isUp`. */
  readonly against: number;
}

export function nextCheckState(
  state: CheckState,
  isGood: boolean,
  check: Pick<HealthCheck, 'rise' | 'fall'>,
): CheckState {
  if (isGood === state.isUp) return { isUp: state.isUp, against: 0 };
  const against = state.against + 1;
  const isEnough = against >= (isGood ? check.rise : check.fall);
  return isEnough ? { isUp: isGood, against: 0 } : { isUp: state.isUp, against };
}
