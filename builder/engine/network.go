package engine

import (
	"context"
	"slices"

	"github.com/moby/buildkit/util/network"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// rawSockets is the capability to send arbitrary packets and frames. Build steps do not have this
// capability: with raw frames, a step could bypass the routes that block link-local addresses.
const rawSockets = "CAP_NET_RAW"

// stepNetwork is the network provider for build steps. It removes rawSockets from the capabilities
// of its steps. BuildKit has no setting for a step's capabilities, but a network provider can
// change a step's OCI spec.
type stepNetwork struct{ network.Provider }

// New returns a network namespace for a step.
func (n stepNetwork) New(ctx context.Context, hostname string, options network.NamespaceOptions) (network.Namespace, error) {
	namespace, err := n.Provider.New(ctx, hostname, options)
	if err != nil {
		return nil, err
	}
	return stepNamespace{namespace}, nil
}

type stepNamespace struct{ network.Namespace }

// Set removes rawSockets from a step's OCI spec.
func (n stepNamespace) Set(s *specs.Spec) error {
	if c := s.Process.Capabilities; c != nil {
		for _, set := range []*[]string{&c.Bounding, &c.Effective, &c.Inheritable, &c.Permitted, &c.Ambient} {
			*set = slices.DeleteFunc(slices.Clone(*set), func(capability string) bool { return capability == rawSockets })
		}
	}
	return n.Namespace.Set(s)
}
