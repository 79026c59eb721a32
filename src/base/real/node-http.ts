// Node's HTTP/1.1. Importing node:http by its names reads every export, among them WebSocket, and that loads the whole of
// undici: 14 MB and 40 ms in each thread for what is not used here.

export const { Agent, createServer, request } = process.getBuiltinModule('node:http');
