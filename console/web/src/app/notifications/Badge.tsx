import { NotificationBadge } from '@patternfly/react-core';
import { useStore } from '../../api/store';
import { text } from '../../text/en';
import { isOpen, useNotifications } from './notifications';

/** Badge opens a project's notifications. It shows the number of unread notifications. */
export function Badge({ project }: { project: string }) {
  const { unread } = useNotifications(project);
  const open = useStore(isOpen);
  return (
    <NotificationBadge
      variant={unread.some((event) => event.type === 'Warning') ? 'attention' : unread.length > 0 ? 'unread' : 'read'}
      count={unread.length}
      aria-label={text.notifications.badge(unread.length)}
      isExpanded={open}
      onClick={() => isOpen.set(!open)}
    />
  );
}
