// For tests: questions over real sockets on loopback, and answers as text.

import { createSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import packet, { type DecodedPacket } from 'dns-packet';
import { type AskOptions, describeAnswer, encodeQuestion } from '../ask.ts';

export interface Target {
  readonly host: string;
  readonly port: number;
}

const waitMs = 5000;

export function askUdpRaw(target: Target, message: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(target.host.includes(':') ? 'udp6' : 'udp4');
    const timer = setTimeout(
      () => end(() => reject(new Error(`no answer from ${target.host}:${target.port}`))),
      waitMs,
    );
    const end = (finish: () => void) => {
      clearTimeout(timer);
      socket.close();
      finish();
    };
    socket.on('message', (reply) => end(() => resolve(reply)));
    socket.send(message, target.port, target.host);
  });
}

export async function askUdp(target: Target, question: string, options: AskOptions = {}): Promise<string> {
  return describeAnswer(packet.decode(await askUdpRaw(target, encodeQuestion(question, options))));
}

export function framed(message: Uint8Array): Buffer {
  const bytes = Buffer.alloc(2 + message.length);
  bytes.writeUInt16BE(message.length);
  bytes.set(message, 2);
  return bytes;
}

/** Reads so many answers from a connection. */
export function readFrames(socket: Socket, count: number): Promise<DecodedPacket[]> {
  return new Promise((resolve, reject) => {
    const frames: DecodedPacket[] = [];
    let bytes = Buffer.alloc(0);
    const timer = setTimeout(() => reject(new Error(`${frames.length} of ${count} answers came`)), waitMs);
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= 2 && bytes.length >= 2 + bytes.readUInt16BE(0)) {
        const end = 2 + bytes.readUInt16BE(0);
        frames.push(packet.decode(bytes.subarray(2, end)));
        bytes = bytes.subarray(end);
      }
      if (frames.length < count) return;
      clearTimeout(timer);
      resolve(frames);
    });
  });
}

export async function askTcp(target: Target, question: string, options: AskOptions = {}): Promise<string> {
  const socket = connect(target);
  try {
    const reading = readFrames(socket, 1);
    socket.write(framed(encodeQuestion(question, options)));
    return describeAnswer((await reading)[0]!);
  } finally {
    socket.destroy();
  }
}
