/** units maps the suffixes of quantities to their factors. */
const units: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

const pattern = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/;

/** quantity parses a quantity such as 500m or 2Gi. It returns NaN for any other string. */
export function quantity(of: string | undefined): number {
  const match = pattern.exec(of ?? '');
  return match ? Number(match[1] + (match[2] ?? '')) * (units[match[3] ?? ''] ?? 1) : NaN;
}
