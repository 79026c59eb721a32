// The roles of an account against the requests it made: which rights nobody used.

import type { PolicyRule } from '../../src/kube/objects/rbac.ts';
import type { AuditLine } from './audit.ts';

/** As an API server has it: about resources, or about paths. */
export interface GrantedRule extends Partial<PolicyRule> {
  readonly verbs: string[];
  readonly nonResourceURLs?: readonly string[];
}

/** The rules of one role, in one namespace or, without it, everywhere. */
export interface Granted {
  readonly role: string;
  readonly namespace?: string;
  readonly rules: readonly GrantedRule[];
}

/** Rights that leave no line in the log, with the reason. */
const unseen: Readonly<Record<string, string>> = {
  'update serviceimports/finalizers.multicluster.x-k8s.io':
    'the admission plugin OwnerReferencesPermissionEnforcement asks for it; it runs here, so that slices are refused without',
  'create endpointslices/restricted.discovery.k8s.io': 'OpenShift asks for it; there is none here',
};

/** Each single right that no request of the account needed, in words; `everywhere` if a namespace would have been enough. */
export function unusedRights(granted: readonly Granted[], lines: readonly AuditLine[], home: string): string[] {
  return granted.flatMap(({ role, namespace, rules }) =>
    rules.flatMap((rule) => [
      ...unusedPaths(role, rule, lines),
      ...singleRights(rule).flatMap((right) => {
        const uses = lines.filter((line) => isUse(line, right, namespace));
        const what = `${right.verb} ${right.resource}${right.group === '' ? '' : `.${right.group}`}`;
        const text = `${role}: ${what}${right.name === undefined ? '' : ` ${right.name}`}`;
        if (what in unseen) return [];
        // A list shows as much. One object is read again only after a conflict, which a run may not have.
        if (right.verb === 'get' && lines.some((line) => isUse(line, { ...right, verb: 'list' }, namespace))) return [];
        if (uses.length === 0) return [text];
        const isWide = namespace === undefined && uses.every(({ objectRef }) => objectRef?.namespace === home);
        return isWide ? [`${text} (everywhere, and used in ${home} only)`] : [];
      }),
    ]),
  );
}

function unusedPaths(
  role: string,
  { nonResourceURLs = [], verbs }: GrantedRule,
  lines: readonly AuditLine[],
): string[] {
  const isAsked = (path: string) => lines.some(({ requestURI }) => requestURI.split('?')[0] === path);
  return nonResourceURLs.filter((path) => !isAsked(path)).map((path) => `${role}: ${verbs.join()} ${path}`);
}

interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly name: string | undefined;
}

function singleRights({ verbs, apiGroups = [], resources = [], resourceNames }: GrantedRule): Right[] {
  const names: (string | undefined)[] = resourceNames ?? [undefined];
  return verbs.flatMap((verb) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) => names.map((name) => ({ verb, group, resource, name }))),
    ),
  );
}

function isUse({ verb, objectRef, responseStatus }: AuditLine, right: Right, namespace: string | undefined): boolean {
  // An update that creates a Lease needs both rights.
  const isCreation = verb === 'update' && right.verb === 'create' && responseStatus?.code === 201;
  if (objectRef === undefined || (verb !== right.verb && !isCreation)) return false;
  const { apiGroup = '', resource, subresource, name } = objectRef;
  const whole = subresource === undefined ? resource : `${resource}/${subresource}`;
  if (apiGroup !== right.group || whole !== right.resource) return false;
  if (right.name !== undefined && name !== right.name) return false;
  return namespace === undefined || objectRef.namespace === namespace;
}
