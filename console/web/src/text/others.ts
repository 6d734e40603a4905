/** others contains the texts about a project's objects that run pods without a rollout. */
export const others = {
  completed: (done: number, total: number) => `${done} of ${total} completed`,
  complete: 'Complete',
  failed: 'Failed',
  suspended: 'Suspended',
  schedule: (schedule: string) => `Runs at ${schedule}`,
  pending: 'Pending',
  trimmed: (n: number, total: number) => `The first ${n} of ${total} are shown. Filter to find others.`,
};
