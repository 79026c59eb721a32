export function findExternalDns(): { readonly path: string } | { readonly path?: undefined; readonly why: string };
