// The documents inside a report: the page without a server.

const documents = new Map<string, string>();
for (const block of document.querySelectorAll<HTMLScriptElement>("script[data-document]")) {
  documents.set(block.dataset.document ?? "", block.textContent ?? "");
}

/** Whether this page is a file of its own, which nobody answers. */
export const isReport = documents.size > 0;

/** The text of a document of the report. */
export function embedded(path: string): string | undefined {
  return documents.get(path);
}
