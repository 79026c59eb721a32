// Attacks that need a clusterset, peers or a clock of their own: they are tests, and run as such in a simulated world.

import { fileURLToPath } from 'node:url';
import { runNamedTests } from '../support/named-tests.ts';
import type { Attack } from './attack.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

const scenarios: readonly (readonly [attempt: string, test: string, title: string])[] = [
  [
    'a Service of a tenant in the place of a derived one, so that the agent writes for it',
    'sim/scenarios/derived-service.test.ts',
    'derived services: a Service of that name which a tenant made, with a mark of another import or none -> left alone, and the import says so',
  ],
  [
    'a PeerExport with names, paths and selectors of another namespace',
    'src/peering/owner/owner-catalog.test.ts',
    'export: names, paths and selectors that fit services of another namespace -> none of those is offered',
  ],
  [
    'clocks of a home and an agent that are off by hours, and by a day',
    'sim/scenarios/lease.test.ts',
    'lease: clocks hours apart -> judged by what was seen, and nobody is condemned',
  ],
  [
    'tokens before and after their time, by a clock that jumped',
    'src/home/security/tokens.test.ts',
    'tokens: before and after its time -> refused, with a minute of leeway for a clock that is behind',
  ],
  [
    'two introductions with one token at once',
    'src/peering/owner/introduction.test.ts',
    'introduction: two come with one token at once -> one becomes a Peer, the other is refused',
  ],
  [
    'many invented tickets at an admin endpoint at once',
    'src/kube/client/ticket-check.test.ts',
    'ticket check: many at once -> four are asked about, the others get 429',
  ],
  [
    'the certificate of an authority as a leaf, and a SPIFFE id with a query or a fragment',
    'src/peering/trust/trust.test.ts',
    'trust: %s -> refused with the reason',
  ],
  [
    'a client key of an external service, from the sidecar of a node that does not use it',
    'src/main/xds/client-keys.test.ts',
    'client keys: used by an account -> sent to sidecars of nodes that run it, to no other; later Pods bring it, gone ones take it',
  ],
  [
    "names of a peer's ingress that lead to loopback, to metadata services or to our own ranges",
    'src/xds/sources/ingress-names.test.ts',
    'ingress names: addresses of our own and special ones -> left out, with the reason; the others are used',
  ],
];

export const scenarioAttacks: readonly Attack[] = scenarios.map(([attempt, test, title]) => ({
  attempt,
  run: async () => {
    const [outcome] = await runNamedTests(root, test, [title]);
    return { isHeld: outcome === 'passed', outcome: `${test}: ${outcome}` };
  },
}));
