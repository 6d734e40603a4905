import { Button, Grid, GridItem, TextArea, TextInput } from '@patternfly/react-core';
import { text } from '../../text/en';
import { useRowFocus } from '../../ui/useRowFocus';

/** maxRows is the maximum height of a value's field, in lines. */
const maxRows = 12;

interface PairsProps {
  label: string;
  pairs: [key: string, value: string][];
  change: (pairs: [key: string, value: string][]) => void;
}

/** Pairs edits keys with their values. Its last row is always empty. */
export function Pairs({ label, pairs, change }: PairsProps) {
  const rows: [string, string][] = pairs.length === 0 ? [['', '']] : pairs;
  const focus = useRowFocus<HTMLInputElement>();
  const set = (index: number, pair: [string, string]) => change(rows.map((row, i) => (i === index ? pair : row)));
  return (
    <Grid hasGutter role="group" aria-label={label}>
      {rows.map(([key, value], index) => (
        <GridItem key={index}>
          <Grid hasGutter>
            <GridItem md={4}>
              <TextInput ref={focus.first(index)} aria-label={text.forms.pairKey(index + 1)} placeholder={text.forms.key} autoComplete="off" value={key} onChange={(_, changed) => set(index, [changed, value])} />
            </GridItem>
            <GridItem md={6}>
              <TextArea aria-label={text.forms.pairValue(index + 1)} placeholder={text.forms.value} rows={Math.min(value.split('\n').length, maxRows)} resizeOrientation="vertical" value={value} onChange={(_, changed) => set(index, [key, changed])} />
            </GridItem>
            <GridItem md={2}>
              {pairs.length > 0 && (
                <Button
                  variant="link"
                  onClick={() => {
                    focus.leave(index, rows.length);
                    change(rows.filter((_, i) => i !== index));
                  }}
                >
                  {text.forms.removePair(index + 1)}
                </Button>
              )}
            </GridItem>
          </Grid>
        </GridItem>
      ))}
      <GridItem>
        <Button variant="secondary" onClick={() => change([...rows, ['', '']])}>
          {text.forms.addPair}
        </Button>
      </GridItem>
    </Grid>
  );
}
