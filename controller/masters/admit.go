package masters

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

// MemberError means that an existing etcd member has the same name or address as the new member.
type MemberError struct{ Member etcdmember.Member }

// Error returns a message that contains the member and the command that removes it.
func (e MemberError) Error() string {
	return fmt.Sprintf("etcd already has a member %s at %s; remove the previous host with: oc delete node %s", e.Member.Name, e.Member.PeerURL, e.Member.Name)
}

// Adder adds members to etcd.
type Adder interface {
	List(ctx context.Context) ([]etcdmember.Member, error)
	AddLearner(ctx context.Context, peerURL string) ([]etcdmember.Member, error)
}

// Admit adds a learner to etcd and returns the initial member list for the learner's first start.
// If Admit is called again for a learner that has not started, it returns the same list. The error
// can be a MemberError.
func Admit(ctx context.Context, client Adder, name, peerURL string) (cluster string, err error) {
	members, err := client.List(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(members, func(m etcdmember.Member) bool { return m.PeerURL == peerURL || m.Name == name })
	if i >= 0 && members[i].Name != "" {
		return "", MemberError{members[i]}
	}
	if i < 0 {
		if members, err = client.AddLearner(ctx, peerURL); err != nil {
			return "", err
		}
		slog.Info("added a member to etcd", "node", name, "address", peerURL)
	}
	return initialCluster(members, name, peerURL), nil
}

// initialCluster lists the members as NAME=URL. It sets the new member's name, which etcd does not
// have yet.
func initialCluster(members []etcdmember.Member, newName, newURL string) string {
	var list []string
	for _, m := range members {
		name := m.Name
		if m.PeerURL == newURL {
			name = newName
		}
		if name == "" {
			name = fmt.Sprintf("%x", m.ID) // this member has not started yet either
		}
		list = append(list, name+"="+m.PeerURL)
	}
	return strings.Join(list, ",")
}

// Remove removes a master's etcd member and settings.
func Remove(ctx context.Context, members Members, client kubernetes.Interface, node string) error {
	list, err := members.List(ctx)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.Name != node {
			continue
		}
		if err := members.Remove(ctx, m.ID); err != nil && !errors.Is(err, etcdmember.ErrNotFound) {
			return err
		}
		slog.Info("removed an etcd member", "node", node)
	}
	return forget(ctx, client, node)
}
