package engine

import (
	"context"
	"slices"

	"github.com/moby/buildkit/util/network"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// rawSockets is the capability to send arbitrary packets and frames. The steps of a build do not
// get it: with raw frames, a step could bypass the routes that block link-local addresses.
const rawSockets = "CAP_NET_RAW"

// stepNetwork is the network of steps, without raw sockets. BuildKit has no setting for the
// capabilities of steps, but a network provider can change the OCI spec of a step.
type stepNetwork struct{ network.Provider }

// New returns the network of a step.
func (n stepNetwork) New(ctx context.Context, hostname string, options network.NamespaceOptions) (network.Namespace, error) {
	namespace, err := n.Provider.New(ctx, hostname, options)
	if err != nil {
		return nil, err
	}
	return stepNamespace{namespace}, nil
}

type stepNamespace struct{ network.Namespace }

// Set removes rawSockets from the OCI spec of a step.
func (n stepNamespace) Set(s *specs.Spec) error {
	if c := s.Process.Capabilities; c != nil {
		for _, set := range []*[]string{&c.Bounding, &c.Effective, &c.Inheritable, &c.Permitted, &c.Ambient} {
			*set = slices.DeleteFunc(slices.Clone(*set), func(capability string) bool { return capability == rawSockets })
		}
	}
	return n.Namespace.Set(s)
}
