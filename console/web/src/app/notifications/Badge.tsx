import { NotificationBadge } from '@patternfly/react-core';
import { useStore } from '../../api/store';
import { text } from '../../text/en';
import { isOpen, useNotifications } from './notifications';

/** Badge opens the notifications of a project. It shows how many are unread. */
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
