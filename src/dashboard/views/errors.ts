// An answer that cannot be given, with the HTTP status that says why.

export class QuestionError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
