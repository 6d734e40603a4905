import { Flex, FlexItem } from '@patternfly/react-core';
import { consumptionOf, type Consumption, type QuotaStatus } from '../api/quota';
import { text } from '../text/en';
import { Donut } from './Donut';

/** nearlyUsed is the used share at which a donut starts to show a warning. */
const nearlyUsed = 0.8;

function colorOf({ share }: Consumption): string {
  const state = share >= 1 ? 'danger' : share >= nearlyUsed ? 'warning' : 'success';
  return `var(--pf-t--global--color--status--${state}--default)`;
}

/** QuotaDonuts draws the used share of each limit. */
export function QuotaDonuts({ status }: { status: QuotaStatus | undefined }) {
  const all = consumptionOf(status);
  return all.length === 0 ? <p>{text.none}</p> : <Flex>{all.map(draw)}</Flex>;
}

function draw(of: Consumption) {
  const used = Number.isNaN(of.share) ? 0 : Math.min(Math.round(of.share * 100), 100);
  const parts = [
    { label: `% ${text.quota.used}`, count: used, color: colorOf(of) },
    { label: `% ${text.quota.free}`, count: 100 - used, color: 'var(--pf-t--global--border--color--default)' },
  ];
  return (
    <FlexItem key={of.resource} className="console-quota">
      <Donut parts={parts} total={Number.isNaN(of.share) ? '-' : `${Math.round(of.share * 100)}%`} caption={text.quota.used} />
      <strong>{of.resource}</strong>
      <span>{text.quota.of(of.used, of.hard)}</span>
    </FlexItem>
  );
}
