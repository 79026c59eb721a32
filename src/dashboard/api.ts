// Questions of the page besides its rows: one service, a name, a plan. Each is answered from what the session's bearer may
// see. The only order that is taken is the demo's: cut a cluster off, heal it.

import { errorText } from '../base/log.ts';
import type { Session } from './session.ts';
import { askName } from './views/ask.ts';
import { QuestionError } from './views/errors.ts';
import { readFigures } from './views/figures.ts';
import { readFlows } from './views/flows.ts';
import { serviceView } from './views/service.ts';
import { planChange } from './views/what-if.ts';
import { type HistoryRange, type Measure, measures } from './wire/views.ts';

interface ApiQuestion {
  readonly session: Session;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
}

export interface Api {
  answer(question: ApiQuestion): Promise<unknown>;
}

export function isQuestionError(error: unknown): error is QuestionError {
  return error instanceof QuestionError;
}

export interface ApiOptions {
  readonly control: ((verb: 'break' | 'heal', cluster: string) => Promise<string>) | undefined;
}

type Handler = (question: ApiQuestion) => unknown;

export function createApi({ control }: ApiOptions): Api {
  const routes: Readonly<Record<string, { readonly method: string; readonly handle: Handler }>> = {
    '/api/service': { method: 'GET', handle: ({ session, query }) => serviceView(session.landscape(), keyIn(query)) },
    '/api/ask': { method: 'GET', handle: ({ session, query }) => askName(session.landscape(), nameIn(query)) },
    '/api/what-if': { method: 'GET', handle: ({ session, query }) => planChange(session.landscape(), planIn(query)) },
    '/api/figures': { method: 'GET', handle: ({ session }) => readFigures(session.landscape()) },
    '/api/traffic': { method: 'GET', handle: ({ session, query }) => session.traffic.view(placeIn(query)) },
    '/api/history': { method: 'GET', handle: ({ session, query }) => session.traffic.past(...pastIn(query)) },
    '/api/flows': {
      method: 'GET',
      handle: ({ session, query }) => readFlows(session.landscape(), session.traffic.flows, flowsIn(query)),
    },
    '/api/demo': { method: 'POST', handle: (question) => order(control, question) },
  };
  return {
    answer: async (question) => {
      const route = routes[question.path];
      if (route === undefined) throw new QuestionError(404, `there is no ${question.path}`);
      if (route.method !== question.method) throw new QuestionError(405, `only ${route.method}`);
      return route.handle(question);
    },
  };
}

async function order(control: ApiOptions['control'], { query, session }: ApiQuestion): Promise<unknown> {
  const verb = query.get('verb');
  if (control === undefined) throw new QuestionError(404, 'this is no demo: the dashboard changes nothing');
  if (session.isWelcome() !== true) throw new QuestionError(401, 'no home accepts this token any more');
  if (verb !== 'break' && verb !== 'heal') throw new QuestionError(400, 'verb: break or heal');
  try {
    return { text: await control(verb, query.get('cluster') ?? '') };
  } catch (error) {
    throw new QuestionError(400, errorText(error));
  }
}

function keyIn(query: URLSearchParams): string {
  const key = query.get('key') ?? '';
  if (!/^[^/]{1,253}\/[^/]{1,253}$/.test(key)) throw new QuestionError(400, 'key: write NAMESPACE/NAME');
  return key;
}

function nameIn(query: URLSearchParams) {
  return { cluster: query.get('cluster') ?? '', name: query.get('name') ?? '', type: query.get('type') ?? 'A' };
}

function planIn(query: URLSearchParams) {
  const change = query.get('change') === 'unexport' ? ('unexport' as const) : ('export' as const);
  return { cluster: query.get('cluster') ?? '', key: keyIn(query), change };
}

function placeIn(query: URLSearchParams) {
  const [from, to] = [query.get('cluster'), query.get('to')];
  if (from !== null) return { from };
  return to === null ? { service: keyIn(query) } : { to };
}

function pastIn(query: URLSearchParams): [Measure, HistoryRange] {
  const wanted = query.get('measure');
  const measure = measures.find((one) => one === wanted);
  if (measure === undefined) throw new QuestionError(400, `measure: ${measures.join(', ')}`);
  return [measure, query.get('range') === 'day' ? 'day' : 'hour'];
}

function flowsIn(query: URLSearchParams) {
  const after = query.get('after');
  if (after !== null && !/^\d{1,15}$/.test(after)) throw new QuestionError(400, 'after: a number');
  const text = (name: string) => (query.get(name) ?? '').slice(0, 300);
  return {
    ...{ service: text('service'), from: text('from'), to: text('to'), outcome: text('outcome') },
    after: after === null ? undefined : Number(after),
  };
}
