import {
  Button,
  EmptyState,
  NotificationDrawer,
  NotificationDrawerBody,
  NotificationDrawerHeader,
  NotificationDrawerList,
  NotificationDrawerListItem,
  NotificationDrawerListItemBody,
  NotificationDrawerListItemHeader,
} from '@patternfly/react-core';
import { countOf, lastSeen } from '../../api/events';
import { text } from '../../text/en';
import { Age } from '../../ui/Age';
import { ObjectLink } from '../../ui/ObjectLink';
import { isOpen, mark, useNotifications } from './notifications';

/** Drawer lists a project's notifications. */
export default function Drawer({ project }: { project: string }) {
  const { shown, unread } = useNotifications(project);
  const t = text.notifications;
  return (
    <NotificationDrawer aria-label={t.title}>
      <NotificationDrawerHeader title={t.title} customText={t.unread(unread.length)} closeButtonAriaLabel={text.close} onClose={() => isOpen.set(false)}>
        <Button variant="link" isDisabled={unread.length === 0} onClick={() => mark('read', unread)}>
          {t.readAll}
        </Button>
        <Button variant="link" isDisabled={shown.length === 0} onClick={() => mark('dismissed', shown)}>
          {t.clear}
        </Button>
      </NotificationDrawerHeader>
      <NotificationDrawerBody>
        {shown.length === 0 ? (
          <EmptyState headingLevel="h2" titleText={t.empty} />
        ) : (
          <NotificationDrawerList aria-label={t.title}>
            {shown.map((event) => {
              const variant = event.type === 'Warning' ? 'warning' : 'info';
              const isRead = !unread.includes(event);
              return (
                <NotificationDrawerListItem
                  key={event.metadata.uid}
                  variant={variant}
                  isRead={isRead}
                  isHoverable={!isRead}
                  tabIndex={isRead ? -1 : 0}
                  readStateScreenReaderText={isRead ? t.isRead : t.isUnread}
                  onClick={() => mark('read', [event])}
                >
                  <NotificationDrawerListItemHeader variant={variant} headingLevel="h2" title={countOf(event) > 1 ? t.times(event.reason ?? '', countOf(event)) : (event.reason ?? '')} srTitle={event.type} />
                  <NotificationDrawerListItemBody timestamp={<Age of={lastSeen(event)} />}>
                    <ObjectLink of={event.involvedObject} />
                    <p>{event.message}</p>
                  </NotificationDrawerListItemBody>
                </NotificationDrawerListItem>
              );
            })}
          </NotificationDrawerList>
        )}
      </NotificationDrawerBody>
    </NotificationDrawer>
  );
}
