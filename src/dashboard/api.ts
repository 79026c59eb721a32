// Questions of the page besides its rows: one service, a name, a plan. Each is answered from what the session's bearer may
// see. The only order that is taken is the demo's: cut a cluster off, heal it.

import { errorText } from '../base/log.ts';
import type { World } from '../base/world.ts';
import type { Session } from './session.ts';

export interface ApiQuestion {
  readonly session: Session;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
}

export interface Api {
  answer(question: ApiQuestion): Promise<unknown>;
}

export interface ApiError extends Error {
  readonly status: number;
}

class QuestionError extends Error implements ApiError {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export function isApiError(error: unknown): error is ApiError {
  return error instanceof QuestionError;
}

export interface ApiOptions {
  readonly world: World;
  readonly control: ((verb: 'break' | 'heal', cluster: string) => Promise<string>) | undefined;
}

type Handler = (question: ApiQuestion) => unknown;

export function createApi({ control }: ApiOptions & { readonly sessions: unknown }): Api {
  const routes: Readonly<Record<string, { readonly method: string; readonly handle: Handler }>> = {
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
