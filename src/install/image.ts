// The image of our parts: it follows the version unless its value pins a tag or a digest. Pure.

import { version } from '../base/version.ts';

/** The default of releases that wrote the version into their values, which `helm upgrade --reuse-values` keeps. */
export const formerDefaultImage = 'portolan:0.1.0';

/** A colon before the last slash is the port of a registry. */
export const pinnedPattern = /@|:[^/]*$/;

export function isPinned(image: string): boolean {
  return image !== formerDefaultImage && pinnedPattern.test(image);
}

export function imageOf(image: string): string {
  if (isPinned(image)) return image;
  return `${image === formerDefaultImage ? 'portolan' : image}:${version}`;
}
