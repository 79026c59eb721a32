// An OCI image layout on disk: blobs by digest, a manifest per architecture, one index. Tar and gzip are told to leave out
// everything that differs between two runs: times, owners, order of files.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';

const mediaType = {
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  config: 'application/vnd.oci.image.config.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  index: 'application/vnd.oci.image.index.v1+json',
};

// The only folders that the program may write, where nothing is mounted over them.
const ownFolders = { 'var/lib/portolan': { owner: 65532, mode: '0750' }, tmp: { owner: 0, mode: '1777' } };

export function createLayout(out, { createdAt }) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(join(out, 'blobs/sha256'), { recursive: true });
  const manifests = [];

  const addBlob = (type, bytes) => {
    const hash = sha256(bytes);
    writeFileSync(join(out, 'blobs/sha256', hash), bytes);
    return { mediaType: type, digest: `sha256:${hash}`, size: bytes.length };
  };
  const addJson = (type, value) => addBlob(type, Buffer.from(JSON.stringify(value)));

  return {
    /** Adds one image whose layers are the contents of folders, the lowest first. */
    addImage({ architecture, layers, config, work }) {
      const tars = layers.map((folder) =>
        tarOf(folder, join(work, `${architecture}-${basename(folder)}.tar`), createdAt),
      );
      const rootfs = { type: 'layers', diff_ids: tars.map((tar) => `sha256:${sha256(tar)}`) };
      const history = layers.map((folder) => ({ created: createdAt.toISOString(), created_by: basename(folder) }));
      const image = { created: createdAt.toISOString(), architecture, os: 'linux', config, rootfs, history };
      const manifest = {
        schemaVersion: 2,
        mediaType: mediaType.manifest,
        config: addJson(mediaType.config, image),
        layers: tars.map((tar) => addBlob(mediaType.layer, gzipSync(tar, { level: 6 }))),
      };
      const descriptor = { ...addJson(mediaType.manifest, manifest), platform: { os: 'linux', architecture } };
      manifests.push(descriptor);
      return descriptor.digest;
    },

    /** Writes the index; returns its digest. */
    finish(version) {
      const index = addJson(mediaType.index, { schemaVersion: 2, mediaType: mediaType.index, manifests });
      const named = { ...index, annotations: { 'org.opencontainers.image.ref.name': version } };
      writeFileSync(join(out, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
      writeFileSync(join(out, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [named] }));
      return index.digest;
    },
  };
}

function tarOf(folder, path, createdAt) {
  const time = `@${Math.floor(createdAt.getTime() / 1000)}`;
  const noTimes = '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime,delete=mtime';
  const common = ['-C', folder, `--mtime=${time}`, '--numeric-owner', '--format=posix', noTimes];
  const left = Object.keys(ownFolders).filter((name) => existsSync(join(folder, name)));
  const exclude = left.map((name) => `--exclude=./${name}`);
  const rest = ['--sort=name', '--owner=0', '--group=0', '--mode=go-w,u+rw,a+rX', ...exclude, '-cf', path, '.'];
  execFileSync('tar', [...common, ...rest]);
  for (const name of left) {
    const { owner, mode } = ownFolders[name];
    execFileSync('tar', [
      ...common,
      `--owner=${owner}`,
      `--group=${owner}`,
      `--mode=${mode}`,
      '-rf',
      path,
      `./${name}`,
    ]);
  }
  return readFileSync(path);
}

function sha256(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}
