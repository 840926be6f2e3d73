/** Who shops here. In demo mode a token is a name, and no secret. */
export const actor = 'alice';
export const token = (): string => `demo-${actor}`;
/** Who tries to pay for alice's order. */
export const stranger = 'mallory';

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
