package etcdmember

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Defragment releases unused space in a member's database file to the file system. The member
// serves no requests while it is defragmented, which takes about one second for each 100 MB in use.
func (c Client) Defragment(ctx context.Context, url string) error {
	client, err := c.Member(url)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Defragment(ctx, url); err != nil {
		return fmt.Errorf("defragment etcd member %s: %w", url, err)
	}
	return nil
}

// MoveLeader transfers leadership from the leader at url to another voting member.
func (c Client) MoveLeader(ctx context.Context, url string, to uint64) error {
	client, err := c.Member(url)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.MoveLeader(ctx, to); err != nil {
		return fmt.Errorf("move leadership of etcd to member %x: %w", to, err)
	}
	return nil
}

// Compact removes all earlier revisions of all keys. It returns once their space is free.
func (c Client) Compact(ctx context.Context) error {
	client, err := c.local()
	if err != nil {
		return err
	}
	defer client.Close()
	current, err := client.Get(ctx, "\x00", clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("read etcd revision: %w", err)
	}
	_, err = client.Compact(ctx, current.Header.Revision, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact etcd: %w", err)
	}
	return nil
}

// Full reports whether etcd rejects writes because a member's database file has reached its maximum
// size (the NOSPACE alarm).
func (c Client) Full(ctx context.Context) (bool, error) {
	client, err := c.local()
	if err != nil {
		return false, err
	}
	defer client.Close()
	response, err := client.AlarmList(ctx)
	if err != nil {
		return false, fmt.Errorf("list etcd alarms: %w", err)
	}
	for _, alarm := range response.Alarms {
		if alarm.Alarm == etcdserverpb.AlarmType_NOSPACE {
			return true, nil
		}
	}
	return false, nil
}

// Disarm clears the NOSPACE alarm on all members. A member that is still full raises the alarm
// again.
func (c Client) Disarm(ctx context.Context) error {
	client, err := c.local()
	if err != nil {
		return err
	}
	defer client.Close()
	response, err := client.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("list etcd alarms: %w", err)
	}
	for _, alarm := range response.Alarms {
		if alarm.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		if _, err := client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return fmt.Errorf("disarm alarm of etcd member %x: %w", alarm.MemberID, err)
		}
	}
	return nil
}
