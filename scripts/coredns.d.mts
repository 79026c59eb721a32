export function findCoredns(): { readonly path: string } | { readonly path?: undefined; readonly why: string };
