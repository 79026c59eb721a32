// The alerts as files: rules for Prometheus, the same as a PrometheusRule, and the runbooks. Pure.

import { systemNamespace } from '../../kube/objects/ours.ts';
import { type Alert, alerts } from './alerts.ts';

/** In the sources of this release: no address is invented, and links of your own may lead there. */
const runbooksPath = 'docs/runbooks.md';

export function ruleGroups(): { readonly groups: readonly object[] } {
  return { groups: [{ name: 'portolan', rules: alerts.map(ruleOf) }] };
}

function ruleOf(alert: Alert): object {
  return {
    alert: alert.name,
    expr: alert.expression,
    for: alert.holds,
    labels: { severity: alert.severity },
    annotations: {
      summary: alert.summary,
      description: alert.effect,
      runbook: `${runbooksPath}#${alert.name.toLowerCase()}`,
    },
  };
}

export function prometheusRule(): object {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'portolan', namespace: systemNamespace, labels: { 'app.kubernetes.io/name': 'portolan' } },
    spec: ruleGroups(),
  };
}

export function runbooks(): string {
  const head =
    '# Runbooks\n\nOne for each alert of deploy/monitoring. Written from src/install/monitoring/alerts.ts.\n';
  return [head, ...alerts.map(runbookOf)].join('\n');
}

function runbookOf({ name, severity, holds, expression, effect, steps, code }: Alert): string {
  const list = steps.map((step, i) => `${i + 1}. ${step}\n`).join('');
  const more =
    code === undefined ? '' : `\n\`portolan doctor\` shows it as [${code}](codes.md#${code.toLowerCase()}).\n`;
  return `## ${name}\n${severity}, after ${holds}:\n\`\`\`promql\n${expression}\n\`\`\`\n${effect}\n\n${list}${more}`;
}
