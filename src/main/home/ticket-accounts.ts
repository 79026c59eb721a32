// The accounts whose tokens let people ask parts and read connections. An installation on Kubernetes brings them along.

import { createIfAbsent } from '../../kube/client/apply.ts';
import type { Client } from '../../kube/client/client.ts';
import { ticketAccountOf, ticketKinds } from '../../kube/objects/admin-ticket.ts';
import { serviceAccountType } from '../../kube/objects/rbac.ts';

export async function ensureTicketAccounts(client: Client): Promise<void> {
  for (const kind of ticketKinds)
    await createIfAbsent(client, serviceAccountType, {
      ...{ apiVersion: 'v1', kind: 'ServiceAccount' },
      metadata: { ...ticketAccountOf(kind) },
    });
}
