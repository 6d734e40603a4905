package policy

import (
	"context"
	"fmt"

	"sigs.k8s.io/knftables"
)

// Restrictions contains, for each direction, the number of a node's pods whose connections are
// restricted by policies. External connections are the connections that an egress firewall
// restricts.
type Restrictions struct {
	Ingress  int `json:"ingress"`
	Egress   int `json:"egress"`
	External int `json:"external"`
}

// Restricted counts the pods that an Enforcer's table restricts. The counts are 0 if the table does
// not exist.
func Restricted(ctx context.Context, name string, networks Networks) (r Restrictions, err error) {
	t, err := openTable(name, networks)
	if err != nil {
		return r, err
	}
	for d, count := range map[direction]*int{ingress: &r.Ingress, egress: &r.Egress, external: &r.External} {
		pods, err := t.nft.ListElements(ctx, "map", d.podMap())
		if err != nil && !knftables.IsNotFound(err) {
			return r, fmt.Errorf("list restricted pods: %w", err)
		}
		*count = len(pods)
	}
	return r, nil
}
