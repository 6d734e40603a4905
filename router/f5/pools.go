package f5

import (
	"context"
	"net/http"
	"strings"
)

// poolItem is a pool in REST API format.
type poolItem struct {
	FullPath          string
	LoadBalancingMode string
	Monitor           string
	MembersReference  struct {
		Items []struct {
			Name, Address string
			Ratio         int
		}
	}
}

// readPools reads the pools and their members.
func (a *Appliance) readPools(ctx context.Context, o *objects[pool]) error {
	*o = objects[pool]{
		collection: "ltm/pool", folder: a.config.Partition,
		create: func(p pool) map[string]any {
			body := map[string]any{"loadBalancingMode": p.mode}
			if p.monitor != "" {
				body["monitor"] = p.monitor
			}
			var members []map[string]any
			for name, m := range p.members {
				members = append(members, a.memberBody(name, m))
			}
			body["members"] = members
			return body
		},
	}
	return fill(ctx, a.client, o, "?expandSubcollections=true", func(item poolItem) (string, pool, bool) {
		name, isOwn := own(item.FullPath, a.config.Partition)
		p := pool{mode: item.LoadBalancingMode, monitor: plainMonitor(item.Monitor), members: map[string]member{}}
		for _, m := range item.MembersReference.Items {
			p.members[m.Name] = member{m.Address, m.Ratio}
		}
		return name, p, isOwn
	})
}

// plainMonitor removes the braces that the appliance adds to a monitor expression, so that the
// result has the form that the router writes.
func plainMonitor(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '{' || r == '}' }), " ")
	if text == none {
		return ""
	}
	return text
}

func (a *Appliance) memberBody(name string, m member) map[string]any {
	return map[string]any{"name": name, "partition": a.config.Partition, "address": m.address, "ratio": m.ratio}
}

// ensurePools creates missing pools and updates the members of existing pools.
func (a *Appliance) ensurePools(ctx context.Context, desired map[string]pool) error {
	o := &a.known.pools
	return o.each(desired, func(name string) error {
		existing, exists := o.actual[name]
		if !exists {
			return o.ensure(ctx, a.client, map[string]pool{name: desired[name]})
		}
		if err := a.changePool(ctx, name, existing, desired[name]); err != nil {
			return err
		}
		o.actual[name] = desired[name]
		return nil
	})
}

// changePool updates a pool. Members that remain keep their connections and their state.
func (a *Appliance) changePool(ctx context.Context, name string, existing, desired pool) error {
	path := a.known.pools.path(name)
	if existing.mode != desired.mode || existing.monitor != desired.monitor {
		body := map[string]any{"loadBalancingMode": desired.mode, "monitor": desired.monitor}
		if desired.monitor == "" {
			body["monitor"] = none
		}
		if err := a.client.call(ctx, http.MethodPatch, path, body, nil); err != nil {
			return err
		}
	}
	members := objects[member]{
		collection: path + "/members", folder: a.config.Partition, actual: existing.members,
		create: func(m member) map[string]any { return map[string]any{"address": m.address, "ratio": m.ratio} },
		change: func(m member) map[string]any { return map[string]any{"ratio": m.ratio} },
	}
	before := addresses(existing)
	if err := members.ensure(ctx, a.client, desired.members); err != nil {
		return err
	}
	if err := members.prune(ctx, a.client, desired.members); err != nil {
		return err
	}
	a.releaseNodes(ctx, before, addresses(desired))
	return nil
}

// prunePools deletes pools that neither a route nor a service with endpoints needs.
func (a *Appliance) prunePools(ctx context.Context, desired map[string]pool) error {
	o := &a.known.pools
	return o.each(o.actual, func(name string) error {
		if _, needed := desired[name]; needed {
			return nil
		}
		before := addresses(o.actual[name])
		if err := o.remove(ctx, a.client, name); err != nil {
			return err
		}
		a.releaseNodes(ctx, before, nil)
		return nil
	})
}

func addresses(p pool) map[string]bool {
	all := map[string]bool{}
	for _, m := range p.members {
		all[m.address] = true
	}
	return all
}

// releaseNodes deletes the appliance's nodes for addresses that are no longer in a pool. The
// appliance creates a node for each member address, and rejects the node's deletion while another
// pool uses the address.
func (a *Appliance) releaseNodes(ctx context.Context, before, after map[string]bool) {
	for address := range before {
		if !after[address] {
			path := "ltm/node/" + escape(a.config.Partition+"/"+address)
			_ = a.client.call(ctx, http.MethodDelete, path, nil, nil) // an unused node is harmless
		}
	}
}
