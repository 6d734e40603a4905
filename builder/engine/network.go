package engine

import (
	"context"
	"slices"

	"github.com/moby/buildkit/util/network"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// rawSockets is the capability to send any packet or frame. A pod of a build does not have it:
// frames would pass the routes that close link-local addresses to steps.
const rawSockets = "CAP_NET_RAW"

// stepNetwork is the network of steps, without raw sockets. BuildKit has no setting for the
// capabilities of steps, but the provider of a network changes their specification.
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

// Set changes the specification of a step.
func (n stepNamespace) Set(s *specs.Spec) error {
	if c := s.Process.Capabilities; c != nil {
		for _, set := range []*[]string{&c.Bounding, &c.Effective, &c.Inheritable, &c.Permitted, &c.Ambient} {
			*set = slices.DeleteFunc(slices.Clone(*set), func(capability string) bool { return capability == rawSockets })
		}
	}
	return n.Namespace.Set(s)
}
