import { Button, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useEffect } from 'react';
import { readUser, useUser } from '../api/hooks';
import { channelName, loginPath, session, type Message } from '../api/session';
import { useStore } from '../api/store';
import { text } from '../text/en';
import { leave, reload } from './logout';

/**
 * Expired offers a login in another window when the session has expired. The page keeps its state.
 * If the user logs out in another window, the browser opens another page.
 */
export function Expired() {
  const state = useStore(session);
  const user = useUser()?.metadata.name;
  useEffect(() => {
    const channel = new BroadcastChannel(channelName);
    channel.onmessage = ({ data }: MessageEvent<Message>) => (data === 'logged out' ? leave() : void resume(user));
    return () => channel.close();
  }, [user]);
  if (state !== 'expired') {
    return null;
  }
  return (
    <Modal variant="small" isOpen aria-labelledby="expired-title" aria-describedby="expired-body">
      <ModalHeader title={text.connection.expiredTitle} labelId="expired-title" titleIconVariant="warning" />
      <ModalBody id="expired-body">{text.connection.expired}</ModalBody>
      <ModalFooter>
        <Button component="a" href={loginPath('/console/signed-in')} target="_blank">
          {text.connection.logIn}
        </Button>
      </ModalFooter>
    </Modal>
  );
}

/**
 * resume continues with the session of a login in another window. If a different user has logged
 * in, it reloads the page, because the page contains the previous user's data.
 */
async function resume(previous: string | undefined): Promise<void> {
  if (!(await session.read())) {
    return;
  }
  const { metadata } = await readUser();
  if (previous !== undefined && metadata.name !== previous) {
    reload();
  } else {
    session.set('active');
  }
}
