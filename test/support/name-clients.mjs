// Clients that ask who answers at a name and port, in some lanes at once, and count answers and failures. Told what to do by
// JSON; prints one line of JSON when `count` connections were made, or, without a count, when a line comes on standard
// input (which asks it to stop). `kind` is tcp, http (one request for each connection), udp,
// or tcp-session and udp-session for one that stays.
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { get } from 'node:http';
import { connect } from 'node:net';

const {
  kind,
  host,
  port,
  count = Number.POSITIVE_INFINITY,
  lanes = 10,
  family = 4,
  from,
  timeoutMs = 5000,
  everyMs,
  pauseMs = 0,
  closeMs,
} = JSON.parse(process.argv[2]);
const answers = {};
const failures = {};
let begun = 0;
let isStopped = false;
let known;
let seen = [];
let failed = [];
/** Of failed requests, by the order in which they failed. */
const failedPorts = [];

if (!kind.endsWith('-session'))
  process.stdin.on('data', (data) => {
    // `mark` asks for what was seen since the last mark.
    if (String(data).includes('mark')) {
      process.stdout.write(`${JSON.stringify({ answers: tally(seen), failures: tally(failed) })}\n`);
      [seen, failed] = [[], []];
    } else isStopped = true;
  });
if (kind.endsWith('-session')) session();
else await finish();

async function finish() {
  await Promise.all(Array.from({ length: lanes }, lane));
  process.stdout.write(`${JSON.stringify({ answers, failures, failedPorts })}\n`, () => process.exit(0));
}

// One connection that stays: prints the first answer, and one more for each line on standard input, as JSON. With `everyMs`
// it asks by itself until the connection ends, and then prints how.
async function session() {
  const to = await address();
  if (kind === 'udp-session') {
    const socket = createSocket('udp4');
    let isFirst = true;
    socket.on('message', (message) => {
      say(isFirst ? String(message) : JSON.stringify(String(message)));
      isFirst = false;
    });
    socket.on('error', () => {});
    process.stdin.on('data', () => socket.send('who', port, to));
    // An unconnected socket, as many UDP clients have: it keeps its port and hears no refusal.
    return socket.send('who', port, to);
  }
  const socket = connect({ host: to, port });
  let isFirst = true;
  socket.on('data', (data) => {
    // Several answers may have come at once.
    if (isFirst) say(String(data).split('\n')[0].trim());
    else if (everyMs === undefined) say(JSON.stringify(String(data).trim()));
    isFirst = false;
  });
  socket.on('error', (error) => say(error.code));
  process.stdin.on('data', () => socket.write('again\n'));
  if (everyMs !== undefined) setInterval(() => socket.write('again\n'), everyMs);
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
async function lane() {
  while (begun < count && !isStopped) {
    begun += 1;
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs * 2 * Math.random()));
    try {
      const answer = await { tcp, http, udp }[kind](await address());
      answers[answer] = (answers[answer] ?? 0) + 1;
      seen.push(answer);
    } catch (error) {
      const what = error.code ?? error.message;
      failures[what] = (failures[what] ?? 0) + 1;
      failed.push(what);
      if (error.localPort !== undefined) failedPorts.push(error.localPort);
    }
  }
}

// As a client with a cache does: asked again after fifty connections.
function address() {
  if (known === undefined || begun % 50 === 0) known = lookup(host, { family }).then((found) => found.address);
  return known;
}

function tcp(to) {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: to, port, localAddress: from });
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('timeout')));
    socket.once('error', reject);
    // A client that has lost interest, whether it was answered or not.
    if (closeMs !== undefined)
      setTimeout(() => {
        socket.destroy();
        resolve('closed early');
      }, closeMs);
    socket.once('data', (data) => {
      resolve(String(data).trim());
      // Reset, so that no port waits for two minutes.
      socket.resetAndDestroy();
    });
    socket.once('end', () => reject(new Error('ended')));
  });
}

function http(to) {
  return new Promise((resolve, reject) => {
    const request = get({ host: to, port, agent: false, timeout: timeoutMs }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.once('end', () => resolve(text));
      response.once('error', reject);
    });
    let localPort;
    // It has its port once the connection is under way.
    request.once('socket', (socket) =>
      setImmediate(() => {
        localPort = socket.localPort;
      }),
    );
    request.once('timeout', () => request.destroy(new Error('timeout')));
    request.once('error', (error) => reject(Object.assign(error, { localPort })));
  });
}

function udp(to) {
  return new Promise((resolve, reject) => {
    const socket = createSocket(to.includes(':') ? 'udp6' : 'udp4');
    const timer = setTimeout(() => {
      socket.close();
      reject(new Error('timeout'));
    }, timeoutMs);
    const end = (settle, value) => {
      clearTimeout(timer);
      socket.close();
      settle(value);
    };
    socket.once('message', (message) => end(resolve, String(message)));
    socket.once('error', (error) => end(reject, error));
    socket.connect(port, to, () => socket.send('who'));
  });
}

function tally(list) {
  const counts = {};
  for (const each of list) counts[each] = (counts[each] ?? 0) + 1;
  return counts;
}
