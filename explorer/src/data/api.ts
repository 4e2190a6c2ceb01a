// Asks the server. Addresses are relative, so that the page also works under a proxy's path.
import { embedded, isReport } from "./embedded";
import { parseJson } from "./json";

/** What the server could not answer, and what to do about it. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly hint: string | null,
  ) {
    super(message);
  }
}

interface Problem {
  message: string;
  hint: string | null;
}

/** A JSON document. Raises ApiError with words for the user. */
export async function getDocument<T>(path: string, signal?: AbortSignal): Promise<T> {
  if (isReport) return fromReport<T>(path);
  const answer = await ask(path, signal);
  return parseJson<T>(await answer.text());
}

function fromReport<T>(path: string): T {
  const text = embedded(path);
  if (text === undefined) {
    throw new ApiError("The report does not hold this.", "trnscope open shows it.");
  }
  const found = parseJson<T & { error?: Problem }>(text);
  if (found.error) throw new ApiError(found.error.message, found.error.hint);
  return found;
}

/** A binary answer. */
export async function getBytes(path: string, signal?: AbortSignal): Promise<Uint8Array> {
  const answer = await ask(path, signal);
  return new Uint8Array(await answer.arrayBuffer());
}

/** Whether a request was given up because its answer is no longer wanted. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

async function ask(path: string, signal?: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(`./api/${path}`, { signal: signal ?? null });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError("The server does not answer.", "Is trnscope open still running?");
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

async function problemOf(answer: Response): Promise<ApiError> {
  try {
    const { error } = (await answer.json()) as { error: Problem };
    return new ApiError(error.message, error.hint);
  } catch {
    return new ApiError(`The server failed (status ${answer.status}).`, "See its terminal.");
  }
}
