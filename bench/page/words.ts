// What stands around the tables.

export const opening = `# How large, how fast

Made by \`npm run report\` from the benches named under each table, on the machine that is named there; nothing here is edited by
hand. \`npm run report -- --only scale,growth\` measures some again, \`--draw\` draws the page from what was kept. A figure at a load
above the number of cores says little about time: run it on a quiet machine of yours. Ratios compare both sides in one run.`;

export const breaks = `## What breaks first, and how it shows

- **Joining** is slow before anything else is: a home writes an address, an import and slices for every imported service. \`portolan status\` counts
  what is still to come; names answer as they arrive. A cluster that needs few of the services should not import all of them:
  \`accept: false\` in a ServiceImportPolicy.
- **Memory of a home** follows what it holds. When the kernel ends its process, everybody else goes on with what they have, and
  \`PortolanHomeUnreachable\` fires until it is back and has read its store.
- **The broker’s core** is next: every change goes to every member. The table above says how much of a core ten changes a second
  take; past one core the time of a change to the last cluster grows and \`PortolanSlowPropagation\` fires.
- **Names**: a resolver that is asked more than it can answer is late before it is silent: \`portolan_dns_query_seconds\` rises,
  and the kernel drops questions at its socket, which \`portolan_dns\` cannot count and clients see as timeouts.
- **Rules of a node** are loaded as a whole at its start and after a firewall was restarted; meanwhile
  \`portolan_proxy_problems\` is above 0 and \`PortolanPartNotReady\` fires.`;
