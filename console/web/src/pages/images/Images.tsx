import { Alert, Button, Form, FormGroup, Grid, GridItem, List, ListItem, TextInput } from '@patternfly/react-core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { bytes } from '../../api/image';
import { useRights } from '../../api/hooks';
import { byProject, flagsOf, prune, readUsage, type ImageUsage, type Usage as Images } from '../../api/images';
import { admin } from '../../text/admin';
import { text } from '../../text/en';
import { Confirm } from '../../ui/Confirm';
import { Copyable } from '../../ui/Copyable';
import { DataTable, type DataColumn } from '../../ui/DataTable';
import { Failure } from '../../ui/Failure';
import { Loading } from '../../ui/Loading';
import { Outcome } from '../../ui/Outcome';
import { Panel } from '../../ui/Panel';
import { StackPage } from '../../ui/StackPage';

const t = admin.images;

/** maxShown is the maximum number of images in a table. */
const maxShown = 100;

/**
 * Component shows which objects use the cluster's images, and which images pruning would remove.
 */
export function Component() {
  const [revisions, setRevisions] = useState('3');
  const [minutes, setMinutes] = useState('60');
  const [asked, setAsked] = useState<string[]>([]);
  const [pruned, setPruned] = useState<number>();
  const mayPrune = useRights(undefined).may('delete', 'image.openshift.io', 'images');
  const number = (value: string) => Math.max(0, Math.floor(Number(value)) || 0);
  const retention = { revisions: number(revisions), minutes: number(minutes) };
  const { data, error, refetch, isPlaceholderData } = useQuery({ queryKey: ['image-usage', retention], queryFn: ({ signal }) => readUsage(retention, signal), staleTime: 0, placeholderData: keepPreviousData });
  const removable = data?.images.filter(({ prunable }) => prunable).map(({ name }) => name) ?? [];
  const remove = async () => {
    setPruned(undefined);
    setPruned(await prune(retention, asked));
    await refetch();
  };
  if (error) {
    return <Failure error={error} retry={() => void refetch()} />;
  }
  return (
    <StackPage title={t.title} body={t.body}>
      <Panel title={t.preview}>
        <Form onSubmit={(event) => event.preventDefault()}>
          <Grid hasGutter md={6}>
            <GridItem>
              <FormGroup label={t.keepRevisions} fieldId="keep-revisions">
                <TextInput id="keep-revisions" type="number" min={0} value={revisions} onChange={(_, value) => setRevisions(value)} />
              </FormGroup>
            </GridItem>
            <GridItem>
              <FormGroup label={t.keepYounger} fieldId="keep-younger">
                <TextInput id="keep-younger" type="number" min={0} value={minutes} onChange={(_, value) => setMinutes(value)} />
              </FormGroup>
            </GridItem>
          </Grid>
        </Form>
        <Outcome isDone={pruned !== undefined} done={t.pruned(pruned ?? 0)} />
        {data ? <Preview usage={data} /> : <Loading />}
        {removable.length > 0 && mayPrune && (
          <div>
            {/* The dialog removes only images in the preview, so the preview must match these
                settings. */}
            <Button variant="danger" isDisabled={isPlaceholderData || !revisions || !minutes} onClick={() => setAsked(removable)}>
              {t.prune(removable.length)}
            </Button>
          </div>
        )}
        <p>{t.command}</p>
        <Copyable label={t.command}>
          {['oc adm prune images', ...flagsOf(retention).map(([name, value]) => `--${name}=${value}`), '--confirm'].join(' ')}
        </Copyable>
      </Panel>
      {data && <Usage images={data.images} />}
      {asked.length > 0 && <Confirm title={t.prune(asked.length)} body={t.pruneBody} action={t.pruneConfirm} run={remove} close={() => setAsked([])} />}
    </StackPage>
  );
}

const columns: DataColumn<ImageUsage>[] = [
  { title: t.image, cell: ({ name }) => name.slice(0, 19), mono: true },
  { title: t.streams, cell: ({ tags }) => tags.join(', ') || text.none },
  { title: t.size, cell: ({ size }) => bytes(size) },
  { title: t.users, cell: ({ users }) => users.join(', ') || text.none },
];

const sum = (images: ImageUsage[]) => bytes(images.reduce((total, { size }) => total + size, 0));

function Preview({ usage: { images, invalid } }: { usage: Images }) {
  if (invalid.length > 0) {
    return (
      <Alert isInline component="h3" variant="warning" isLiveRegion title={t.invalid}>
        <p>{t.invalidBody}</p>
        <List>
          {invalid.slice(0, maxShown).map((problem) => (
            <ListItem key={problem}>{problem}</ListItem>
          ))}
        </List>
      </Alert>
    );
  }
  const removed = images.filter(({ prunable }) => prunable);
  return (
    <>
      <Alert isInline component="h3" variant="info" isLiveRegion title={removed.length === 0 ? t.nothing : t.removes(removed.length, sum(removed))}>
        {t.previewBody}
      </Alert>
      {removed.length > 0 && <DataTable label={t.preview} items={removed.slice(0, maxShown)} keyOf={({ name }) => name} empty={t.nothing} columns={columns} />}
    </>
  );
}

function Usage({ images }: { images: ImageUsage[] }) {
  return (
    <>
      <Panel title={t.storage}>
        <DataTable
          label={t.storage}
          items={byProject(images)}
          keyOf={({ project }) => project}
          empty={t.none}
          columns={[
            { title: t.project, cell: ({ project }) => project },
            { title: t.count, cell: ({ images: own }) => own.length },
            { title: t.size, cell: ({ images: own }) => sum(own) },
          ]}
        />
      </Panel>
      <Panel title={t.all}>
        {images.length > maxShown && <p>{t.trimmed(maxShown, images.length)}</p>}
        <DataTable label={t.all} items={images.slice(0, maxShown)} keyOf={({ name }) => name} empty={t.none} columns={columns} />
      </Panel>
    </>
  );
}
