// The machine of a program besides its World: environment, files that others write, other programs. Only what
// a person starts by hand or a parts list wires takes a Host.

export interface Host {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Resolves to undefined if there is no such file. */
  readText(path: string): Promise<string | undefined>;
  run(command: Command): Promise<CommandResult>;
}

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  /** Added to the environment of this process. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** 4 MiB if absent; a program that writes more is ended. */
  readonly outputBytesMax?: number;
}

export type CommandResult =
  | { readonly kind: 'exited'; readonly code: number; readonly stdout: string; readonly stderr: string }
  | { readonly kind: 'not started'; readonly reason: string; readonly isMissing: boolean }
  | { readonly kind: 'timed out' };
