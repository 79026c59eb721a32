export function findHelm(): { readonly path?: string; readonly why?: string };
