import { readFile } from 'node:fs/promises';

/** A file of docs/ that the clients in all languages and the service are tested against. */
export const published = async (name) =>
  JSON.parse(await readFile(new URL(`../../../../../docs/${name}.json`, import.meta.url), 'utf8'));
