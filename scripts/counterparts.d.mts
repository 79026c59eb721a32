export function installCounterparts(): void;
export function installDebianPrograms(commands: readonly string[]): void;
export function findCommand(command: string): string | undefined;
export function findKubectls(): { minor: number; path: string }[];

export function findEnvoy(): string | undefined;
export function findPythonGrpc(): string | undefined;
