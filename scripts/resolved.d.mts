export function findResolved(): { readonly path: string } | { readonly path?: undefined; readonly why: string };
