/** Sample is a metric's sample in Prometheus' text format. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const escapes: Record<string, string> = { '\\n': '\n', '\\"': '"', '\\\\': '\\' };

/** samplesOf returns the samples whose names begin with a prefix. */
export function samplesOf(text: string, prefix: string): Sample[] {
  const samples: Sample[] = [];
  for (const row of text.split('\n')) {
    const match = row.startsWith(prefix) ? line.exec(row) : null;
    if (match) {
      const labels: Record<string, string> = {};
      for (const [, key = '', value = ''] of (match[2] ?? '').matchAll(label)) {
        labels[key] = value.replace(/\\[n"\\]/g, (escape) => escapes[escape] ?? escape);
      }
      samples.push({ name: match[1] ?? '', labels, value: Number(match[3]) });
    }
  }
  return samples;
}
