import { Store, useStore } from '../api/store';

const tickInterval = 10_000;

/** clock contains the current time. It is updated as often as displayed ages change. */
const clock = new Store(Date.now());
setInterval(() => clock.set(Date.now()), tickInterval);

/** formatAge formats a duration in seconds as oc commands do: 5d, 3h20m, 40s. */
export function formatAge(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) {
    return `${s}s`;
  }
  const minutes = Math.floor(s / 60);
  if (minutes < 10) {
    return s % 60 === 0 ? `${minutes}m` : `${minutes}m${s % 60}s`;
  }
  if (minutes < 180) {
    return `${minutes}m`;
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 8) {
    return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  }
  if (hours < 48) {
    return `${hours}h`;
  }
  const days = Math.floor(hours / 24);
  return days < 365 * 2 ? `${days}d` : `${Math.floor(days / 365)}y`;
}

/**
 * Age shows how long ago something happened, and the time itself in a tooltip. It renders a single
 * element, because a list shows dozens of ages.
 */
export function Age({ of }: { of: string | undefined }) {
  const now = useStore(clock);
  if (!of) {
    return <>-</>;
  }
  const date = new Date(of);
  return (
    <time dateTime={of} title={date.toUTCString()}>
      {formatAge((now - date.getTime()) / 1000)}
    </time>
  );
}
