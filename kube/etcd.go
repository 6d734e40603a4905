package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"k8s.io/utils/clock"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

// Etcd is the component that runs etcd. The API server in the same process connects over a Unix
// socket, which only root can open. The TLS addresses are for etcdctl, backups and additional
// members.
type Etcd struct {
	// Dir is the member's data directory, with mode 0700.
	Dir string
	// Socket is the path of the Unix socket that the API server connects to.
	Socket string
	// ClientAddress and PeerAddress are the TLS listen addresses, host:port.
	ClientAddress, PeerAddress string
	// CertFile, KeyFile and CAFile are the paths of this member's certificate and key, and of the CA
	// that signs client and peer certificates.
	CertFile, KeyFile, CAFile string
	// Peers, if set, makes this etcd a member of a cluster with several members.
	Peers *EtcdPeers

	drain    quorumGuard
	snapshot snapshotGuard
	quota    int64 // maximum size of the database file; fileQuota if 0
}

// EtcdPeers holds the settings of a member in a cluster with several members.
type EtcdPeers struct {
	// Name is the member's name.
	Name string
	// Cluster lists all members as NAME=URL, separated by commas. It is used when a joining member
	// first starts, and is empty for the first member.
	Cluster string
	// Client manages the members. It uses the API server's socket.
	Client etcdmember.Client
	// Reset makes this member the only member of the cluster. It keeps its own data, and the other
	// members are lost. An interrupted reset can be repeated.
	Reset bool
	// ResetDone is called after a reset.
	ResetDone func() error
}

// Name returns the component's name.
func (e *Etcd) Name() string { return "etcd" }

// Run serves requests until ctx is done. If etcd cannot read its data directory, the error contains
// the directory's path.
func (e *Etcd) Run(ctx context.Context, ready func()) error {
	config, err := e.config()
	if err != nil {
		return err
	}
	if err := e.check(); err != nil {
		return err
	}
	if e.Peers != nil {
		if err := e.joinPeers(ctx, config); err != nil {
			return err
		}
	}
	pacer := newPacer(databaseQuota, clock.RealClock{})
	config.GRPCAdditionalServerOptions = append(config.GRPCAdditionalServerOptions,
		grpc.ChainUnaryInterceptor(e.drain.intercept, e.snapshot.intercept, pacer.intercept),
		grpc.ChainStreamInterceptor(e.snapshot.interceptStream))
	server, err := e.start(config)
	if err != nil {
		return err
	}
	defer closeServer(server)
	pacer.measure(server.Server.Backend().SizeInUse)
	pacer.shareAmong(func() int { return voters(server.Server.Cluster().Members()) })
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return e.failed(server, fmt.Errorf("start etcd on %q: %w", e.Dir, err))
	case <-server.Server.StopNotify():
		return e.stopped(fmt.Errorf("start etcd on %q: it stopped before it was ready", e.Dir))
	case <-ctx.Done():
		return nil
	}
	if err := e.finishRestore(); err != nil {
		return err
	}
	if e.Peers == nil {
		ready()
		return e.wait(ctx, server)
	}
	if err := e.finishReset(); err != nil {
		return err
	}
	if err := e.publish(ctx, server.Server); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gateway := &etcdGateway{listen: e.Socket, member: e.memberSocket(), client: e.Peers.Client, server: server.Server}
	failed := make(chan error, 1)
	go func() { failed <- gateway.run(ctx, ready); cancel() }()
	err = e.wait(ctx, server)
	cancel()
	return errors.Join(err, <-failed)
}

// voters returns the number of voting members.
func voters(members []*membership.Member) (count int) {
	for _, member := range members {
		if !member.IsLearner {
			count++
		}
	}
	return count
}

// memberSocket returns the path of the member's Unix socket in a cluster with several members, in
// which the gateway listens on Socket.
func (e *Etcd) memberSocket() string { return e.Socket + ".member" }

// publish updates this member's peer address in the etcd cluster. The first member's address
// changes when other members join the cluster.
func (e *Etcd) publish(ctx context.Context, server *etcdserver.EtcdServer) error {
	self := server.Cluster().Member(server.MemberID())
	address := "https://" + e.PeerAddress
	if self == nil || self.IsLearner || slices.Equal(self.PeerURLs, []string{address}) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	changed := membership.Member{ID: self.ID, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{address}}}
	if _, err := server.UpdateMember(ctx, changed); err != nil {
		return fmt.Errorf("publish address %q of this etcd member: %w", address, err)
	}
	return nil
}

// publishTimeout is the maximum time for changing a member's address.
const publishTimeout = 10 * time.Second

// SingleMember is the name of the only member in a cluster with one master.
const SingleMember = "default"

const (
	// databaseQuota is the maximum number of bytes in use in the database. The pacer rejects
	// tenants' writes before this limit is reached.
	databaseQuota = 2 << 30
	// fileQuota is the size in bytes of the database file at which etcd rejects every write until
	// EtcdMaintenance has made the file smaller. It is larger than databaseQuota, because the file
	// shrinks only when it is defragmented. In addition, a large value might need more contiguous
	// pages than a compaction frees.
	fileQuota = 8 << 30
)

// remedy is the last part of errors about unreadable data.
const remedy = "restore a backup of that directory, or move it away to start with an empty cluster"

// check opens the database and returns an error if the database is damaged. Without this check,
// etcd panics in its own goroutine and prints only a stack trace.
func (e *Etcd) check() error {
	path := filepath.Join(e.Dir, "member", "snap", "db")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	database, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 10 * time.Second})
	if err != nil {
		return fmt.Errorf("read etcd database %q: %w; %s", path, err, remedy)
	}
	return database.Close()
}

// start opens the data and starts listening. If etcd cannot read its write-ahead log, it panics or
// exits. start converts both cases to an error.
func (e *Etcd) start(config *embed.Config) (server *embed.Etcd, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("read etcd data in %q: %v; %s", e.Dir, cause, remedy)
		}
	}()
	server, err = embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd on %q: %w", e.Dir, err)
	}
	return server, nil
}

// logger writes warnings to standard error. If etcd logs a fatal message, the logger panics instead
// of exiting, so that start can report the directory.
func logger() *zap.Logger {
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoder), zapcore.Lock(os.Stderr), zapcore.WarnLevel)
	return zap.New(core, zap.WithFatalHook(zapcore.WriteThenPanic), zap.Fields(zap.String("component", "etcd")))
}

func (e *Etcd) config() (*embed.Config, error) {
	if err := os.MkdirAll(e.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create etcd directory: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(e.Socket), 0o700); err != nil {
		return nil, fmt.Errorf("create etcd socket directory: %w", err)
	}
	client := url.URL{Scheme: "https", Host: e.ClientAddress}
	peer := url.URL{Scheme: "https", Host: e.PeerAddress}
	tls := transport.TLSInfo{CertFile: e.CertFile, KeyFile: e.KeyFile, TrustedCAFile: e.CAFile, ClientCertAuth: true}

	c := embed.NewConfig()
	c.Name = SingleMember
	c.Dir = e.Dir
	c.ListenClientUrls = []url.URL{client, {Scheme: "unix", Path: e.Socket}}
	c.AdvertiseClientUrls = []url.URL{client}
	c.ListenPeerUrls = []url.URL{peer}
	c.AdvertisePeerUrls = []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.ClientTLSInfo, c.PeerTLSInfo = tls, tls
	// A single member does not wait for peers, so a short election timeout makes it ready 0.5 s
	// earlier.
	c.TickMs, c.ElectionMs = 10, 100
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModePeriodic, "5m"
	// Raft keeps SnapshotCatchUpEntries writes in memory, and SnapshotCount writes in its log on
	// disk, regardless of their size. Low numbers are sufficient, because no other member has to
	// catch up.
	c.SnapshotCount, c.SnapshotCatchUpEntries = 1000, 100
	c.QuotaBackendBytes = cmp.Or(e.quota, fileQuota)
	c.WarningApplyDuration = time.Second
	c.WarningUnaryRequestDuration = time.Second
	c.EnableGRPCGateway = false
	// Nearly all client connections are idle most of the time, so the read buffers are small. Write
	// buffers come from a shared pool by default.
	c.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ReadBufferSize(4 << 10)}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger())
	return c, nil
}

// joinPeers adapts the settings of a single member to a cluster with several members.
func (e *Etcd) joinPeers(ctx context.Context, c *embed.Config) error {
	cluster, err := e.initialCluster(ctx)
	if err != nil {
		return err
	}
	c.Name = e.Peers.Name
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	if cluster != "" {
		c.InitialCluster, c.ClusterState = cluster, embed.ClusterStateFlagExisting
	}
	c.ListenClientUrls[1].Path = e.memberSocket()
	_, port, err := net.SplitHostPort(e.ClientAddress)
	if err == nil { // etcd reports an invalid address
		c.ListenClientUrls = append(c.ListenClientUrls, url.URL{Scheme: "https", Host: net.JoinHostPort("127.0.0.1", port)})
	}
	// The election timeout allows for network latency between hosts and for busy disks. A lost
	// leader is replaced within four seconds.
	c.TickMs, c.ElectionMs = 200, 2000
	// A member that missed at most this many writes catches up without a copy of the whole
	// database.
	c.SnapshotCount, c.SnapshotCatchUpEntries = 5000, 2000
	// Allow several learners: one can be on standby and others can be down while another learner
	// joins.
	c.MaxLearners = 8
	if e.Peers.Reset {
		return e.prepareReset(c)
	}
	return nil
}
