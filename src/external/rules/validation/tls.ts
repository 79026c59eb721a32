// Validation of the TLS section of a destination. It fails closed: an unverified server is refused unless skipping is
// written down. Pure; contents of keys and certificates are never repeated.

import { isDnsLabel, isDnsSubdomain } from '../../../base/dns/labels.ts';
import { parseIp } from '../../../base/net/ip.ts';
import { type FieldError, forbidden, invalid, notSupported, required } from '../../../kube/objects/field-error.ts';
import { isConfigKey } from '../../../kube/objects/names.ts';
import { tlsVersions } from '../../kinds/mesh-external-service.ts';
import { unixPrefix } from './destination.ts';
import { isDomain } from './hostname.ts';
import { type Fields, fieldsOf, isAbsent, listOf, textOf } from './loose.ts';

export interface TlsContext {
  readonly endpoints: unknown;
  readonly matches: unknown;
}

const sourceFields = ['inline', 'inlineString', 'secret'] as const;
const redacted = '<contents redacted>';

export function checkTls(errors: FieldError[], field: string, tls: Fields, context: TlsContext): void {
  if (tls['enabled'] === false) return;
  const verification = fieldsOf(tls['verification']) ?? {};
  checkVersions(errors, `${field}.version`, fieldsOf(tls['version']) ?? {});
  checkNames(errors, `${field}.verification.subjectAltNames`, verification, context);
  for (const name of ['caCert', 'clientCert', 'clientKey']) {
    if (!isAbsent(tls[name])) checkSource(errors, `${field}.${name}`, tls[name], name === 'caCert');
  }
  if (isAbsent(tls['caCert']) && verification['skip'] !== true) {
    const why = 'without a CA the server cannot be verified; give one, such as system: true, or set verification.skip';
    errors.push(required(`${field}.caCert`, why));
  }
  const pair = ['clientCert', 'clientKey'].filter((name) => isAbsent(tls[name]));
  if (pair.length === 1) errors.push(required(`${field}.${pair[0]}`, 'clientCert and clientKey go together'));
  checkUsers(errors, `${field}.usedBy`, tls);
  const inner = listOf(context.matches).findIndex((match) => fieldsOf(match)?.['protocol'] === 'tls');
  if (inner >= 0)
    errors.push(forbidden(field, `spec.match[${inner}] has protocol tls: it would be TLS inside TLS; use tcp or http`));
}

const usersMax = 100;

function checkUsers(errors: FieldError[], field: string, tls: Fields): void {
  if (isAbsent(tls['usedBy'])) return;
  const users = listOf(tls['usedBy']);
  if (isAbsent(tls['clientKey'])) errors.push(forbidden(field, 'it is about the client key, and there is none'));
  if (users.length > usersMax) errors.push(invalid(field, users.length, `must have at most ${usersMax} items`));
  for (const [index, user] of users.slice(0, usersMax).entries()) {
    const { namespace, serviceAccount } = fieldsOf(user) ?? {};
    const at = `${field}[${index}]`;
    if (textOf(namespace) === undefined) errors.push(required(`${at}.namespace`, 'the namespace of the workload'));
    else for (const why of isDnsLabel(textOf(namespace)!)) errors.push(invalid(`${at}.namespace`, namespace, why));
    if (isAbsent(serviceAccount)) continue;
    for (const why of isDnsSubdomain(textOf(serviceAccount) ?? ''))
      errors.push(invalid(`${at}.serviceAccount`, serviceAccount, why));
  }
}

function checkVersions(errors: FieldError[], field: string, version: Fields): void {
  const ranks = ['min', 'max'].map((end) => {
    const value = version[end];
    const rank = (tlsVersions as readonly unknown[]).indexOf(value);
    if (!isAbsent(value) && rank < 0) errors.push(notSupported(`${field}.${end}`, value, tlsVersions));
    return rank;
  });
  const [min = 0, max = 0] = ranks;
  // 0 is TLS_AUTO, which bends to the other end.
  if (min > 0 && max > 0 && min > max)
    errors.push(invalid(`${field}.min`, version['min'], `must not be above version.max (${String(version['max'])})`));
}

function checkNames(errors: FieldError[], field: string, verification: Fields, { endpoints }: TlsContext): void {
  const names = listOf(verification['subjectAltNames']);
  for (const [index, name] of names.entries()) {
    const wrong = wrongName(textOf(name) ?? '');
    if (wrong !== undefined) errors.push(invalid(`${field}[${index}]`, name, wrong));
  }
  const socket = listOf(endpoints).findIndex((one) => textOf(fieldsOf(one)?.['address'])?.startsWith(unixPrefix));
  if (socket >= 0 && names.length === 0 && verification['skip'] !== true)
    errors.push(
      required(field, `spec.destination.endpoints[${socket}] is a unix socket, which has no name of its own`),
    );
}

function wrongName(name: string): string | undefined {
  if (name === '') return 'must not be empty';
  if (/^[a-z][a-z0-9+.-]*:\/\/\S+$/i.test(name) || parseIp(name) !== undefined) return undefined;
  return isDomain(name).length === 0
    ? undefined
    : 'must be a DNS name, an address or a URI such as spiffe://example/ns';
}

function checkSource(errors: FieldError[], field: string, value: unknown, isAuthority: boolean): void {
  const source = fieldsOf(value) ?? {};
  const isSystem = isAuthority && source['system'] === true;
  const given = sourceFields.filter((name) => !isAbsent(source[name]));
  const choices = [...sourceFields, ...(isAuthority ? ['system'] : [])];
  const chosen = [...given, ...(isSystem ? ['system'] : [])];
  if (chosen.length === 0) errors.push(required(field, `one of ${choices.join(', ')}`));
  if (chosen.length > 1) errors.push(forbidden(field, `only one of ${chosen.join(', ')} may be set`));
  for (const name of given) {
    const text = textOf(source[name]);
    if (text === undefined) errors.push(invalid(`${field}.${name}`, redacted, 'must be text'));
    else if (name === 'inline' && !isBase64(text)) errors.push(invalid(`${field}.inline`, redacted, 'must be base64'));
    else if (name === 'inlineString' && text.trim() === '') errors.push(required(`${field}.inlineString`));
    else if (name === 'secret' && !isSecretReference(text))
      errors.push(invalid(`${field}.secret`, redacted, 'must be the name of a Secret, or name/key'));
  }
}

function isSecretReference(text: string): boolean {
  const [name = '', key, ...rest] = text.split('/');
  return rest.length === 0 && isDnsSubdomain(name).length === 0 && (key === undefined || isConfigKey(key).length === 0);
}

function isBase64(text: string): boolean {
  const compact = text.replaceAll(/\s/g, '');
  return compact !== '' && compact.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(compact);
}
