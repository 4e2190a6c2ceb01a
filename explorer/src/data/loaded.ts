// Documents that are asked once and shown in several places.
import { signal, type ReadonlySignal } from "@preact/signals";
import { ApiError, getDocument } from "./api";

/** A document on its way, there, or not to be had. */
export type Loaded<T> =
  { state: "loading" } | { state: "ready"; value: T } | { state: "failed"; error: ApiError };

const known = new Map<string, ReadonlySignal<Loaded<unknown>>>();

/** The document under this path, asked for when first needed. */
export function loaded<T>(path: string): ReadonlySignal<Loaded<T>> {
  let found = known.get(path);
  if (found === undefined) {
    found = load(path);
    known.set(path, found);
  }
  return found as ReadonlySignal<Loaded<T>>;
}

function load<T>(path: string): ReadonlySignal<Loaded<T>> {
  const result = signal<Loaded<T>>({ state: "loading" });
  getDocument<T>(path).then(
    (value) => (result.value = { state: "ready", value }),
    (error: unknown) => (result.value = { state: "failed", error: asApiError(error) }),
  );
  return result;
}

/** Any failure as one with words for the user. */
export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(String(error), null);
}
