// The views by their addresses, in the order in which somebody in trouble needs them.

export const views = [
  ['/', 'Overview'],
  ['/flows', 'Flows'],
  ['/timeline', 'Timeline'],
  ['/services', 'Services'],
  ['/ask', 'Ask a name'],
  ['/clusters', 'Clusters'],
  ['/matrix', 'Matrix'],
  ['/peers', 'Peers'],
  ['/external', 'External'],
  ['/what-if', 'What if'],
  ['/plots', 'Plots'],
] as const;
