// Loaded into the process under test before its own code. Answers on a Unix socket how long its event loop was held at
// most since the last question: by the clock, and by the processor time of its thread in one turn, which other programs on
// the machine do not add to. Plain JavaScript: nothing strips types here.

import { createServer } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const socket = process.env.HEAVIEST_PROBE;
const resolutionMs = 1;

// npm and whatever else is started with our environment is left alone.
if (isMainThread && socket !== undefined && process.argv[1]?.endsWith('main.js')) {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs });
  delays.enable();
  let cpu = process.cpuUsage();
  let turnMsMax = 0;
  let isWatching = false;
  const watchTurns = (lastMs) => {
    const nowMs = threadMs();
    turnMsMax = Math.max(turnMsMax, nowMs - lastMs);
    if (isWatching) setImmediate(watchTurns, nowMs);
  };
  const answers = {
    reset: () => {
      delays.reset();
      turnMsMax = 0;
      isWatching = true;
      setImmediate(watchTurns, threadMs());
      cpu = process.cpuUsage();
      return {};
    },
    read: () => {
      const { user, system } = process.cpuUsage(cpu);
      isWatching = false;
      return {
        delayMs: Math.max(0, delays.max / 1e6 - resolutionMs),
        turnMs: turnMsMax,
        cpuMs: (user + system) / 1000,
      };
    },
    work: () => {
      const startMs = threadMs();
      fixedWork();
      return { workMs: threadMs() - startMs };
    },
  };
  createServer((connection) => {
    connection.setEncoding('utf8');
    connection.on('data', (line) => connection.write(`${JSON.stringify(answers[line.trim()]())}\n`));
    connection.on('error', () => {});
  })
    .listen(socket)
    .unref();
}

function threadMs() {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function fixedWork() {
  const list = Array.from({ length: 20_000 }, (_, at) => ({ name: `item-${at}`, at, tags: [String(at), 'x'] }));
  return JSON.parse(JSON.stringify(list)).sort((a, b) => b.at - a.at).length;
}
