package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"k8s.io/utils/clock"
)

// Etcd is the component that runs etcd. The API server in the same process connects over a Unix
// socket, which only root can open. The TLS addresses are for etcdctl, backups and, later, for
// further members.
type Etcd struct {
	// Dir contains the member's data, mode 0700.
	Dir string
	// Socket is the path of the Unix socket for the API server.
	Socket string
	// ClientAddress and PeerAddress are the TLS listen addresses, host:port.
	ClientAddress, PeerAddress string
	// CertFile, KeyFile and CAFile are this member's certificate, and the CA of clients and peers.
	CertFile, KeyFile, CAFile string
}

// Name returns the component's name.
func (e *Etcd) Name() string { return "etcd" }

// Run serves until ctx ends. If etcd cannot read its data directory, the error names it.
func (e *Etcd) Run(ctx context.Context, ready func()) error {
	config, err := e.config()
	if err != nil {
		return err
	}
	if err := e.check(); err != nil {
		return err
	}
	pacer := newPacer(databaseQuota, clock.RealClock{})
	config.GRPCAdditionalServerOptions = append(config.GRPCAdditionalServerOptions, grpc.ChainUnaryInterceptor(pacer.intercept))
	server, err := e.start(config)
	if err != nil {
		return err
	}
	defer server.Close()
	pacer.measure(server.Server.Backend().SizeInUse)
	select {
	case <-server.Server.ReadyNotify():
		ready()
	case err := <-server.Err():
		return fmt.Errorf("start etcd on %q: %w", e.Dir, err)
	case <-server.Server.StopNotify():
		return fmt.Errorf("start etcd on %q: it stopped before it was ready", e.Dir)
	case <-ctx.Done():
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return fmt.Errorf("serve etcd: %w", err)
	case <-server.Server.StopNotify():
		return fmt.Errorf("serve etcd: it stopped unexpectedly")
	}
}

const (
	// databaseQuota is the size in bytes of what the database may contain. The pacer keeps tenants
	// below it.
	databaseQuota = 2 << 30
	// fileQuota is the size in bytes of the file of the database from which etcd rejects every write
	// until an administrator intervenes. It is larger than databaseQuota, because the file never
	// shrinks, and the pages that a compaction frees can be too few in a row for a large value.
	fileQuota = 8 << 30
)

// remedy is the end of errors about unreadable data.
const remedy = "restore a backup of that directory, or move it away to start with an empty cluster"

// check opens the database: on damaged data etcd panics in its own goroutine, which would leave
// only a stack trace.
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

// start opens the data and listens. If etcd cannot read its write-ahead log, it panics or exits.
// start converts both to an error.
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

// logger writes warnings to standard error. Fatal messages of etcd panic instead of exiting, so
// that start can name the directory.
func logger() *zap.Logger {
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoder), zapcore.Lock(os.Stderr), zapcore.WarnLevel)
	return zap.New(core, zap.WithFatalHook(zapcore.WriteThenPanic))
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
	c.Name = "default"
	c.Dir = e.Dir
	c.ListenClientUrls = []url.URL{client, {Scheme: "unix", Path: e.Socket}}
	c.AdvertiseClientUrls = []url.URL{client}
	c.ListenPeerUrls = []url.URL{peer}
	c.AdvertisePeerUrls = []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.ClientTLSInfo, c.PeerTLSInfo = tls, tls
	// A single member waits for no peer: a short election makes it ready 0.5 s earlier.
	c.TickMs, c.ElectionMs = 10, 100
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModePeriodic, "5m"
	// Raft keeps SnapshotCatchUpEntries writes in memory, and SnapshotCount of them in its log on
	// disk, however large they are. There is no other member that has to catch up.
	c.SnapshotCount, c.SnapshotCatchUpEntries = 1000, 100
	c.QuotaBackendBytes = fileQuota
	c.WarningApplyDuration = time.Second
	c.WarningUnaryRequestDuration = time.Second
	c.EnableGRPCGateway = false
	// The API server has a connection for each resource, and nearly all are idle: use small read
	// buffers. Write buffers come from a shared pool by default.
	c.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ReadBufferSize(4 << 10)}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger())
	return c, nil
}
