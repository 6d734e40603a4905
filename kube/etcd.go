package kube

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap/zapcore"
)

// Etcd is the cluster's store as a part of this process. The API server beside it connects over a
// Unix socket, which only root can open; the TLS addresses are for etcdctl, backups and, later, for
// further members.
type Etcd struct {
	// Dir holds the member's data, mode 0700.
	Dir string
	// Socket is the path of the Unix socket for the API server.
	Socket string
	// ClientAddress and PeerAddress are the host:port pairs served with TLS.
	ClientAddress, PeerAddress string
	// CertFile, KeyFile and CAFile are this member's certificate and the CA that clients and peers
	// must show a certificate of.
	CertFile, KeyFile, CAFile string
}

// Name is the part's name.
func (e *Etcd) Name() string { return "etcd" }

// Run serves until ctx ends. A data directory that etcd cannot read is an error that names it.
func (e *Etcd) Run(ctx context.Context, ready func()) error {
	config, err := e.config()
	if err != nil {
		return err
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("start etcd on %q: %w", e.Dir, err)
	}
	defer server.Close()
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
		return fmt.Errorf("serve etcd: it stopped by itself")
	}
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
	// A single member has nobody to hear from: a short election makes it ready 0.5 s earlier.
	c.TickMs, c.ElectionMs = 10, 100
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModePeriodic, "5m"
	c.SnapshotCount = 10000
	c.WarningApplyDuration = time.Second
	c.WarningUnaryRequestDuration = time.Second
	c.EnableGRPCGateway = false
	c.ZapLoggerBuilder = nil
	c.LogLevel = zapcore.WarnLevel.String()
	c.LogFormat = "console"
	c.LogOutputs = []string{embed.StdErrLogOutput}
	return c, nil
}
