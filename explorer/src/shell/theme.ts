// Light or dark: what the system says, until the user says otherwise.
import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const KEY = "trnscope-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

const stored = localStorage.getItem(KEY);
const chosen = signal<Theme | null>(stored === "light" || stored === "dark" ? stored : null);

/** The theme in use. */
export const theme = signal<Theme>("light");

/** Keep the page in the theme; called once. */
export function followTheme(): void {
  const apply = (): void => {
    const now = chosen.value ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = now;
    theme.value = now;
  };
  effect(apply);
  system.addEventListener("change", apply);
}

export function toggleTheme(): void {
  chosen.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, chosen.value);
}
