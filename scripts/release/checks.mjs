// Checks before a release: one version everywhere, and a changelog with an entry for it.

/** Everything that is wrong, in words; `texts` are the files by path. */
export function releaseProblems({ version, texts, isUnreleasedAllowed = false }) {
  const problems = [];
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) problems.push(`package.json: version ${version} is not X.Y.Z`);
  for (const [path, pattern] of Object.entries(placesOfVersion)) {
    const found = pattern.exec(texts[path] ?? '')?.[1];
    if (found !== version) problems.push(`${path}: version ${found ?? 'missing'}, package.json has ${version}`);
  }
  const headings = isUnreleasedAllowed ? [version, 'Unreleased'] : [version];
  if (!headings.some((heading) => sectionOf(texts['CHANGELOG.md'] ?? '', heading) !== ''))
    problems.push(`CHANGELOG.md: no section "## ${version}" with a line in it; rename "## Unreleased"`);
  return problems;
}

const placesOfVersion = {
  'src/base/version.ts': /version = '([^']+)'/,
  'deploy/chart/Chart.yaml': /^appVersion: (\S+)$/m,
  'package-lock.json': /"version": "([^"]+)"/,
};

export const checkedFiles = [...Object.keys(placesOfVersion), 'CHANGELOG.md'];

/** The text under a heading such as `## 0.2.0` or `## 0.2.0 (2026-12-01)`; empty if there is none. */
export function sectionOf(changelog, heading) {
  const lines = changelog.split('\n');
  const isHeading = (line) => line === `## ${heading}` || line.startsWith(`## ${heading} `);
  const start = lines.findIndex(isHeading);
  if (start < 0) return '';
  const end = lines.findIndex((line, index) => index > start && line.startsWith('## '));
  return lines
    .slice(start + 1, end < 0 ? undefined : end)
    .join('\n')
    .trim();
}
