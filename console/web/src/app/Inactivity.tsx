import { Modal, ModalBody, ModalHeader } from '@patternfly/react-core';
import { useEffect, useState } from 'react';
import { config } from '../api/config';
import { useStore } from '../api/store';
import { text } from '../text/en';
import { logOut } from './logout';

const key = 'last-activity';
const checkInterval = 1000;
/** noticePeriod is the time between the warning and the logout. */
const noticePeriod = 30_000;
const signs = ['pointerdown', 'keydown', 'wheel', 'touchstart'];

/** Inactivity logs the user out if no window of the browser was used for the configured time. */
export function Inactivity() {
  const timeout = useStore(config).inactivityTimeoutMinutes * 60_000;
  const [closing, setClosing] = useState(false);
  useEffect(() => {
    if (timeout === 0) {
      return undefined;
    }
    const record = () => localStorage.setItem(key, String(Date.now()));
    record();
    signs.forEach((sign) => window.addEventListener(sign, record, { capture: true, passive: true }));
    const timer = setInterval(() => {
      const left = Number(localStorage.getItem(key)) + timeout - Date.now();
      setClosing(left <= noticePeriod);
      if (left <= 0) {
        clearInterval(timer);
        logOut();
      }
    }, checkInterval);
    return () => {
      clearInterval(timer);
      signs.forEach((sign) => window.removeEventListener(sign, record, { capture: true }));
    };
  }, [timeout]);
  if (!closing) {
    return null;
  }
  return (
    <Modal variant="small" isOpen aria-labelledby="inactive-title" aria-describedby="inactive-body" onClose={() => setClosing(false)}>
      <ModalHeader title={text.connection.inactiveTitle} labelId="inactive-title" titleIconVariant="warning" />
      <ModalBody id="inactive-body">{text.connection.inactive}</ModalBody>
    </Modal>
  );
}
