export function buildImage(options: {
  readonly architectures: readonly string[];
  readonly out: string;
  readonly log?: (text: string) => void;
}): Promise<Record<string, string>>;
