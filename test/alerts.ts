// `npm run check:alerts [-- CHAIN...]`: real faults in real processes for the alerts whose faults prometheus.test.ts does not make.
// Debian's Prometheus must fire each alert and end it after the fault is mended. Not among the tests, because some faults take half
// a minute to count as one. Ends with a count, and with 1 if an alert did not fire, did not end or has no fault anywhere.

import { installDebianPrograms } from '../scripts/counterparts.mjs';
import { alerts } from '../src/install/monitoring/alerts.ts';
import { clustersetFaults } from './alerts/clusterset.ts';
import { canMount, diskFaults } from './alerts/disk.ts';
import { alertName, type Fault, showFault } from './alerts/fault.ts';
import { gatewayFaults } from './alerts/gateways.ts';
import { lateHomeFaults } from './alerts/late-home.ts';
import { Stage } from './alerts/stage.ts';
import { alertsOfTests } from './support/alert-watch.ts';
import { pathOf } from './support/counterparts.ts';

/** Chains run at the same time; the faults of one follow each other. */
const chains: Readonly<Record<string, (stage: Stage) => Promise<Fault[]>>> = {
  clusterset: clustersetFaults,
  'late-home': lateHomeFaults,
  gateways: gatewayFaults,
  ...(canMount ? { disk: diskFaults } : {}),
};
/** Alerts without a fault on this machine, and why. */
const leftOut: Readonly<Record<string, string>> = {
  PortolanGatewayCertificateOverdue:
    'xds renews that certificate by itself, and nothing from outside can hold it up for 20 hours',
  ...(canMount
    ? {}
    : {
        PortolanHomeNotWritable: 'a small disk can only be mounted by root',
        PortolanAuditLogNotWritable: 'a small disk can only be mounted by root',
      }),
};

installDebianPrograms(['prometheus']);
if (pathOf('prometheus') === undefined)
  throw new Error('alerts are not checked: there is no prometheus, and it could not be installed');
const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !(name in chains));
if (unknown.length > 0) throw new Error(`no chain ${unknown.join(', ')}, there are ${Object.keys(chains).join(', ')}`);

const stage = await Stage.open();
let problems = 0;
const report = (problem: string) => {
  problems += 1;
  console.log(`FAILED: ${problem}`);
};
const covered = new Set([...alertsOfTests, ...Object.keys(leftOut)]);
const startedMs = Date.now();

async function runChain(name: string, prepare: (stage: Stage) => Promise<Fault[]>): Promise<void> {
  try {
    const faults = await prepare(stage);
    for (const fault of faults) for (const alert of Object.keys(fault.alerts)) covered.add(alertName(alert));
    for (const fault of faults) {
      const failed = await showFault(fault, stage);
      problems += failed;
    }
  } catch (error) {
    report(`${name}: cannot be prepared: ${(error as Error).message}`);
  }
}

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void stage.close().then(() => process.exit(1)));
try {
  const wanted = Object.entries(chains).filter(([name]) => chosen.length === 0 || chosen.includes(name));
  await Promise.all(wanted.map(([name, prepare]) => runChain(name, prepare)));
} finally {
  await stage.close();
}

const names = alerts.map(({ name }) => name);
if (chosen.length === 0) {
  for (const name of names.filter((one) => !covered.has(one))) report(`${name}: no fault is made for it anywhere`);
  for (const name of [...covered].filter((one) => !names.includes(one))) report(`${name}: there is no such alert`);
}
for (const [name, why] of Object.entries(leftOut)) console.log(`left out: ${name}: ${why}`);
const seen = stage.watch.seen();
console.log(
  `${seen.length} of ${names.length} alerts fired and ended in ${Math.round((Date.now() - startedMs) / 1000)} s; ${alertsOfTests.length} more do so in test/prometheus.test.ts; ${problems} problems`,
);
process.exitCode = problems > 0 ? 1 : 0;
