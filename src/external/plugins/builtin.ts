// The plugins that are always there.

import { lambdaPlugin } from './lambda.ts';
import type { Plugins } from './plugin.ts';

export const builtinPlugins: Plugins = new Map([[lambdaPlugin.type, lambdaPlugin]]);
