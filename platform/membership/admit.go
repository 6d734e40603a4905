package membership

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/controller/hosts"
	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/internal/etcdmember"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/record"
)

// Master is a master that admits other hosts to its cluster as masters.
type Master struct {
	DataDir, NodeName string
	Address           netip.Addr
	// ConfigFile is the configuration file on the command line, or "".
	ConfigFile string
	// ClusterFile is the path of the masters' record. Several means that the cluster already has
	// several masters, or is ready for them.
	ClusterFile string
	Several     bool
	// ClientAddress and PeerAddress are the addresses on which etcd serves clients and its peers.
	ClientAddress, PeerAddress string
	// SharedFiles lists the files that all masters share, in addition to the configuration files.
	SharedFiles []string
	Members     etcdmember.Client
	Client      kubernetes.Interface
	// Expand stops the control plane, which then restarts with the settings for several masters.
	Expand func()
}

// Admit adds a host to etcd as a learner and returns the data that the host requires as a master. A
// single master first becomes one of several masters. In this case, Admit returns
// hosts.ErrPreparing, and the host must repeat the request.
func (m *Master) Admit(ctx context.Context, request join.Request) (*join.Master, error) {
	if m.ConfigFile != "" {
		return nil, hosts.Refuse("the master was started with --config %s; move its MasterConfig to %s, so that the other masters can use it, too", m.ConfigFile, config.MasterFile(m.DataDir))
	}
	if !m.Several {
		return nil, m.becomeOneOfSeveral(ctx)
	}
	// The host receives this master's configuration, so its etcd member uses the same ports.
	_, client, clientErr := net.SplitHostPort(m.ClientAddress)
	_, peer, err := net.SplitHostPort(m.PeerAddress)
	if err := errors.Join(clientErr, err); err != nil {
		return nil, fmt.Errorf("read etcd address: %w", err)
	}
	if err := checkFirewall(ctx, request.Address, client, peer); err != nil {
		return nil, hosts.Refuse("master %s cannot connect to this host: %w; %s", m.NodeName, err, openPorts)
	}
	cluster, err := masters.Admit(ctx, m.Members, request.NodeName, "https://"+net.JoinHostPort(request.Address, peer))
	var exists masters.MemberError
	if errors.As(err, &exists) {
		return nil, hosts.Refuse("%w", exists)
	}
	if err != nil {
		return nil, err
	}
	files, err := SharedFiles(m.DataDir, m.ClusterFile, m.SharedFiles)
	if err != nil {
		return nil, err
	}
	return &join.Master{Etcd: cluster, Files: files}, nil
}

// becomeOneOfSeveral records that the cluster will have several masters, and stops the control
// plane. On success, it returns hosts.ErrPreparing.
func (m *Master) becomeOneOfSeveral(ctx context.Context) error {
	if err := hosts.RecordMaster(ctx, m.Client, m.NodeName, m.Address.String()); err != nil {
		return err
	}
	if err := (record.Cluster{Complete: true}).Write(m.ClusterFile); err != nil {
		return err
	}
	m.Expand()
	return hosts.ErrPreparing
}
