// Package etcdmember manages the members of an etcd cluster.
package etcdmember

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Client manages members. It opens a connection for each call, because calls are rare.
type Client struct {
	// Socket is the path of etcd's Unix socket.
	Socket string
	// CertFile, KeyFile and CAFile are the credentials for TLS connections to individual members.
	CertFile, KeyFile, CAFile string
}

// Member is a member of the cluster.
type Member struct {
	ID uint64
	// Name is empty until the member has started for the first time.
	Name string
	// PeerURL and ClientURL are the member's addresses. ClientURL is empty until the member has
	// started for the first time.
	PeerURL, ClientURL string
	// Learner is set if the member receives all data but has no vote.
	Learner bool
}

// Status is a member's state, as reported by the member.
type Status struct {
	Version string
	// Leader is the ID of the member that this member considers the leader, or 0.
	Leader uint64
	// Index is the index of the last log entry that the member has applied.
	Index uint64
	// Size is the size of the member's database file, and InUse is the size of the part that is in
	// use, both in bytes.
	Size, InUse int64
	// Errors contains alarms and other errors.
	Errors []string
}

// dialTimeout is the maximum time to establish a connection.
const dialTimeout = 3 * time.Second

// Errors that callers distinguish.
var (
	// ErrNotReady means that a learner has not caught up with the leader.
	ErrNotReady = errors.New("the learner has not caught up")
	// ErrNotFound means that the cluster has no such member.
	ErrNotFound = errors.New("the cluster has no such member")
)

// local connects to etcd through the socket. The caller must close the client.
func (c Client) local() (*clientv3.Client, error) {
	return connect(clientv3.Config{Endpoints: []string{"unix://" + c.Socket}})
}

// Member returns a connection to one member. The caller must close it.
func (c Client) Member(url string) (*clientv3.Client, error) {
	settings, err := c.TLS()
	if err != nil {
		return nil, err
	}
	return connect(clientv3.Config{Endpoints: []string{url}, TLS: settings})
}

func connect(config clientv3.Config) (*clientv3.Client, error) {
	config.DialTimeout, config.Logger = dialTimeout, zap.NewNop()
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return client, nil
}

// TLS returns the TLS configuration for connections to members.
func (c Client) TLS() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read etcd client certificate: %w", err)
	}
	authority, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read etcd certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return &tls.Config{
		Certificates: []tls.Certificate{certificate}, RootCAs: roots, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2"},
	}, nil
}

// List returns the members, sorted by name and address.
func (c Client) List(ctx context.Context) ([]Member, error) {
	client, err := c.local()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	response, err := client.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list etcd members: %w", err)
	}
	return members(response.Members), nil
}

func members(list []*etcdserverpb.Member) []Member {
	var result []Member
	for _, m := range list {
		member := Member{ID: m.ID, Name: m.Name, Learner: m.IsLearner}
		if len(m.PeerURLs) > 0 {
			member.PeerURL = m.PeerURLs[0]
		}
		if len(m.ClientURLs) > 0 {
			member.ClientURL = m.ClientURLs[0]
		}
		result = append(result, member)
	}
	slices.SortFunc(result, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.PeerURL, b.PeerURL))
	})
	return result
}

// AddLearner adds a learner and returns all members.
func (c Client) AddLearner(ctx context.Context, peerURL string) ([]Member, error) {
	client, err := c.local()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	response, err := client.MemberAddAsLearner(ctx, []string{peerURL})
	if err != nil {
		return nil, fmt.Errorf("add member %s to etcd: %w", peerURL, err)
	}
	return members(response.Members), nil
}

// Update changes a member's peer address.
func (c Client) Update(ctx context.Context, id uint64, peerURL string) error {
	client, err := c.local()
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.MemberUpdate(ctx, id, []string{peerURL})
	if errors.Is(err, rpctypes.ErrMemberNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("update member %x of etcd: %w", id, err)
	}
	return nil
}

// Promote makes a learner a voting member. It returns ErrNotReady if the learner has not caught up.
func (c Client) Promote(ctx context.Context, id uint64) error {
	client, err := c.local()
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.MemberPromote(ctx, id)
	if errors.Is(err, rpctypes.ErrMemberLearnerNotReady) {
		return ErrNotReady
	}
	if err != nil {
		return fmt.Errorf("promote member %x of etcd: %w", id, err)
	}
	return nil
}

// Remove removes a member from the cluster.
func (c Client) Remove(ctx context.Context, id uint64) error {
	client, err := c.local()
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.MemberRemove(ctx, id)
	if errors.Is(err, rpctypes.ErrMemberNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("remove member %x of etcd: %w", id, err)
	}
	return nil
}

// Status requests a member's state.
func (c Client) Status(ctx context.Context, url string) (Status, error) {
	client, err := c.Member(url)
	if err != nil {
		return Status{}, err
	}
	defer client.Close()
	response, err := client.Status(ctx, url)
	if err != nil {
		return Status{}, fmt.Errorf("read state of etcd member %s: %w", url, err)
	}
	return Status{
		Version: response.Version, Leader: response.Leader, Index: response.RaftAppliedIndex,
		Size: response.DbSize, InUse: response.DbSizeInUse, Errors: response.Errors,
	}, nil
}

// Snapshot writes a copy of the database, followed by its SHA-256 hash.
func (c Client) Snapshot(ctx context.Context, timeout time.Duration, out io.Writer) error {
	client, err := c.local()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stream, err := client.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("copy etcd database: %w", err)
	}
	defer stream.Close()
	if _, err := io.Copy(out, stream); err != nil {
		return fmt.Errorf("copy etcd database: %w", err)
	}
	return nil
}
