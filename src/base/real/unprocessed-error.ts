// The one failure after which a request may be sent again, whatever its method: the server has not looked at it.

export class UnprocessedError extends Error {}
