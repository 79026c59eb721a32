// What `/version` answers. The major and minor numbers are those of the Kubernetes API that is spoken here: kubectl
// compares them with its own.

export const versionAnswer = {
  major: '1',
  minor: '33',
  gitVersion: 'v1.33.0-portolan',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: '',
  platform: '',
} as const;
