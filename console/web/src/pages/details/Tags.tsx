import { Button, Label } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { Fragment, useState } from 'react';
import type { Condition, LooseObject } from '../../api/types';
import { text } from '../../text/en';
import { images } from '../../text/images';
import { Age } from '../../ui/Age';
import { Layers } from './Layers';

interface TagItem {
  image: string;
  dockerImageReference: string;
  created: string;
}

interface StreamStatus {
  tags?: { tag: string; items?: TagItem[] | null; conditions?: Condition[] }[];
}

/**
 * Tags shows an image stream's tags with their current images and, on request, the earlier images.
 */
export function Tags({ stream }: { stream: LooseObject }) {
  const status = stream.status as StreamStatus | undefined;
  const [image, setImage] = useState<string>();
  const [opened, setOpened] = useState<string>();
  const { name, namespace = '' } = stream.metadata;
  return (
    <>
      <Table aria-label={text.sections.tags} variant="compact">
        <Thead>
          <Tr>
            <Th>{text.sections.tag}</Th>
            <Th>{text.pod.image}</Th>
            <Th>{images.since}</Th>
            <Th>{text.details.status}</Th>
          </Tr>
        </Thead>
        <Tbody>
          {(status?.tags ?? []).map(({ tag, items, conditions }) => {
            const failure = conditions?.find((c) => c.status === 'False');
            const [current, ...earlier] = items ?? [];
            return (
              <Fragment key={tag}>
                <Tr>
                  <Td dataLabel={text.sections.tag}>
                    {tag}{' '}
                    {earlier.length > 0 && (
                      <Button variant="link" isInline aria-expanded={opened === tag} onClick={() => setOpened(opened === tag ? undefined : tag)}>
                        {opened === tag ? images.hideHistory(tag) : images.history(tag)}
                      </Button>
                    )}
                  </Td>
                  <ImageCells item={current} label={tag} show={setImage} />
                  <Td dataLabel={text.details.status}>{failure ? <Label color="red">{failure.message ?? failure.reason}</Label> : <Label color="green">{text.sections.imported}</Label>}</Td>
                </Tr>
                {opened === tag &&
                  earlier.map((item) => (
                    <Tr key={`${item.image} ${item.created}`}>
                      <Td />
                      <ImageCells item={item} label={item.image} show={setImage} />
                      <Td />
                    </Tr>
                  ))}
              </Fragment>
            );
          })}
        </Tbody>
      </Table>
      {image && <Layers key={image} namespace={namespace} stream={name} image={image} close={() => setImage(undefined)} />}
    </>
  );
}

function ImageCells({ item, label, show }: { item: TagItem | undefined; label: string; show: (image: string) => void }) {
  return (
    <>
      <Td dataLabel={text.pod.image} className="console-mono" modifier="breakWord">
        {item?.dockerImageReference ?? '-'}{' '}
        {item && (
          <Button variant="link" isInline onClick={() => show(item.image)}>
            {text.image.show(label)}
          </Button>
        )}
      </Td>
      <Td dataLabel={images.since}>{item ? <Age of={item.created} /> : '-'}</Td>
    </>
  );
}
