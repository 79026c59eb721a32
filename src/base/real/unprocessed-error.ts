/** The server has not looked at the request: it may be sent again, whatever its method. */
export class UnprocessedError extends Error {}
