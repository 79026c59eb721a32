// All checks, by their code.

import type { Checks } from '../diagnosis.ts';
import { addressChecks } from './addresses.ts';
import { clusterSetChecks } from './clusterset.ts';
import { dnsChecks } from './dns.ts';
import { homeChecks } from './home.ts';
import { peeringChecks } from './peering.ts';
import { serviceChecks } from './services.ts';
import { trafficChecks } from './traffic.ts';

export const allChecks: Checks = {
  ...homeChecks,
  ...clusterSetChecks,
  ...serviceChecks,
  ...addressChecks,
  ...dnsChecks,
  ...peeringChecks,
  ...trafficChecks,
};
