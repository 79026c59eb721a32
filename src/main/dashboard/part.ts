// The dashboard as a part of a process: the built page, the homes it shows, and its edge.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Assets, readAssets } from '../../dashboard/edge/assets.ts';
import { type Dashboard, type DashboardOptions, startDashboard } from '../../dashboard/server.ts';

export type DashboardPart = Omit<DashboardOptions, 'assets'>;

export function runDashboard(options: DashboardPart): Promise<Dashboard> {
  return startDashboard({ ...options, assets: builtPage() });
}

/** Beside the compiled program; a program that runs from its sources has it in dist/. */
function builtPage(): Assets {
  const compiled = resolve(import.meta.dirname, '../../../dashboard');
  return readAssets(existsSync(compiled) ? compiled : resolve(import.meta.dirname, '../../../dist/dashboard'));
}
