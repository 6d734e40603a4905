import { Button, Grid, GridItem, TextArea } from '@patternfly/react-core';
import { text } from '../../text/en';
import { useRowFocus } from '../../ui/useRowFocus';

interface ItemsProps {
  label: string;
  items: string[];
  change: (items: string[]) => void;
}

/** Items edits a list of strings. Its last row is always empty. */
export function Items({ label, items, change }: ItemsProps) {
  const rows = items.length === 0 ? [''] : items;
  const focus = useRowFocus<HTMLTextAreaElement>();
  return (
    <Grid hasGutter>
      {rows.map((item, index) => (
        <GridItem key={index}>
          <Grid hasGutter md={6}>
            <TextArea ref={focus.first(index)} aria-label={text.forms.listItem(label, index + 1)} rows={1} resizeOrientation="vertical" value={item} onChange={(_, changed) => change(rows.map((row, i) => (i === index ? changed : row)))} />
            {items.length > 0 && (
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
          </Grid>
        </GridItem>
      ))}
      <GridItem>
        <Button variant="secondary" onClick={() => change([...rows, ''])}>
          {text.forms.addPair}
        </Button>
      </GridItem>
    </Grid>
  );
}
