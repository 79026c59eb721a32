// A snapshot that cannot be used, and why: cut short, changed, of a newer version, or in need of another key.

export class SnapshotError extends Error {}
