interface Found {
  readonly path?: string;
  readonly why?: string;
}
export function findHelm(): Found;
export function findHelmOf(major: 3 | 4): Found;
